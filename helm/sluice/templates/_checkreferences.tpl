{{/*
Secrets and ConfigMaps that are named must be there. Where there is no cluster to
look in (helm template, Argo CD), and in a namespace that is only being made,
nothing is looked for: the root CA's ConfigMap, which each namespace has, tells.
*/}}
{{- define "sluice.checkReferences" -}}
{{- if and .Values.checkReferences (lookup "v1" "ConfigMap" .Release.Namespace "kube-root-ca.crt") -}}
{{- range concat (include "sluice.secretFiles" . | fromYamlArray) (include "sluice.secretVariables" . | fromYamlArray) -}}
{{- if not (or .made (include "sluice.isExtra" (list $ "Secret" .secret))) -}}
{{- include "sluice.checkSecret" (dict "root" $ "ref" .) -}}
{{- end -}}
{{- end -}}
{{- with .Values.policy.existingConfigMap -}}
{{- if not (or (lookup "v1" "ConfigMap" $.Release.Namespace .) (include "sluice.isExtra" (list $ "ConfigMap" .))) -}}
{{- fail (printf "policy.existingConfigMap names the ConfigMap %s, which is not in the namespace %s: make it, such as by kubectl -n %s create configmap %s --from-file=policy.yaml; or set checkReferences to false if something makes it later." . $.Release.Namespace $.Release.Namespace .) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end }}

{{- define "sluice.checkSecret" -}}
{{- $ns := .root.Release.Namespace -}}
{{- $secret := lookup "v1" "Secret" $ns .ref.secret -}}
{{- if not $secret -}}
{{- fail (printf "%s names the Secret %s, which is not in the namespace %s: make it, such as by kubectl -n %s create secret generic %s --from-file=%s=FILE; or set checkReferences to false if something makes it later." .ref.value .ref.secret $ns $ns .ref.secret .ref.key) -}}
{{- end -}}
{{- if not (hasKey ($secret.data | default dict) .ref.key) -}}
{{- fail (printf "%s names the Secret %s, which has no key %s, only %s: put it there, or say which key it is." .ref.value .ref.secret .ref.key (keys ($secret.data | default dict) | sortAlpha | join ", " | default "none at all")) -}}
{{- end -}}
{{- end }}

{{/* sluice.isExtra (list . kind name) is not empty if extraObjects has such an object. */}}
{{- define "sluice.isExtra" -}}
{{- $root := index . 0 -}}
{{- $want := printf "%s/%s" (index . 1) (index . 2) -}}
{{- range $root.Values.extraObjects -}}
{{- $object := include "sluice.extraObject" (list $root .) | fromYaml -}}
{{- if eq $want (printf "%v/%v" $object.kind (dig "metadata" "name" "" $object)) -}}yes{{- end -}}
{{- end -}}
{{- end }}

{{/* sluice.extraObject (list . object) is one of extraObjects with its templates filled in. */}}
{{- define "sluice.extraObject" -}}
{{- $object := index . 1 -}}
{{- tpl (kindIs "string" $object | ternary $object (toYaml $object)) (index . 0) -}}
{{- end }}
