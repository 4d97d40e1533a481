{{/* Integrations: what gateways and meshes have to be told, in their own objects. */}}

{{/* sluice.integrations.refuse (dict "of" … "because" …) ends the rendering with a sentence. */}}
{{- define "sluice.integrations.refuse" -}}
{{- fail (printf "\n\nintegrations.%s: %s\n" .of .because) -}}
{{- end }}

{{/* sluice.integrations.milliseconds is the timeout as a number. */}}
{{- define "sluice.integrations.milliseconds" -}}
{{- .Values.integrations.timeout | trimSuffix "ms" -}}
{{- end }}

{{/* sluice.integrations.seconds is the timeout as protobuf wants it in JSON: 0.200s. */}}
{{- define "sluice.integrations.seconds" -}}
{{- $ms := include "sluice.integrations.milliseconds" . | int -}}
{{- printf "%d.%03ds" (div $ms 1000) (mod $ms 1000) -}}
{{- end }}

{{/* sluice.integrations.address is host:port without the cluster's domain. */}}
{{- define "sluice.integrations.address" -}}
{{- printf "%s.%s:%s" (include "sluice.serviceName" .) .Release.Namespace (include "sluice.grpcPort" .) -}}
{{- end }}

{{/* sluice.integrations.tls is "true" if the gRPC door speaks TLS. */}}
{{- define "sluice.integrations.tls" -}}
{{- if .Values.tls.enabled }}true{{ end -}}
{{- end }}

{{/* sluice.integrations.targetRefs are references to Gateway API objects, with their group. */}}
{{- define "sluice.integrations.targetRefs" -}}
{{- range . }}
- group: {{ ternary .group "gateway.networking.k8s.io" (hasKey . "group") | quote }}
  kind: {{ .kind }}
  name: {{ .name }}
  {{- with .sectionName }}
  sectionName: {{ . }}
  {{- end }}
{{- end }}
{{- end }}

{{/*
sluice.integrations.domain (dict "root" . "of" …) is the domain that descriptors are of. Without one nothing would be
limited, and nobody would be told.
*/}}
{{- define "sluice.integrations.domain" -}}
{{- if not .root.Values.integrations.domain -}}
{{- include "sluice.integrations.refuse" (dict "of" .of "because" "which domain? RLS asks for one by name: set integrations.domain to the `domain` of a policy file that has `descriptor` rules") -}}
{{- end -}}
{{- .root.Values.integrations.domain -}}
{{- end }}

{{/*
sluice.integrations.grant (dict "root" . "name" … "group" … "kind" … "namespace" …) lets objects of another namespace name
the Service.
*/}}
{{- define "sluice.integrations.grant" -}}
{{- if ne .namespace .root.Release.Namespace }}
---
apiVersion: {{ include "sluice.integrations.apiVersion" (dict "root" .root "kind" "ReferenceGrant" "old" "v1beta1") }}
kind: ReferenceGrant
metadata:
  {{- include "sluice.metadata" (dict "root" .root "name" .name) | nindent 2 }}
spec:
  from:
    - group: {{ .group }}
      kind: {{ .kind }}
      namespace: {{ .namespace }}
  to:
    - group: ""
      kind: Service
      name: {{ include "sluice.serviceName" .root }}
{{- end }}
{{- end }}

{{/*
sluice.integrations.apiVersion (dict "root" . "kind" … "old" …) is the version of a Gateway API object: what the values
say, else v1 if the cluster serves that, else the older one.
*/}}
{{- define "sluice.integrations.apiVersion" -}}
{{- $said := .root.Values.integrations.gatewayAPI.version -}}
{{- $v1 := .root.Capabilities.APIVersions.Has (printf "gateway.networking.k8s.io/v1/%s" .kind) -}}
gateway.networking.k8s.io/{{ if eq $said "v1" }}v1{{ else if eq $said "older" }}{{ .old }}{{ else if $v1 }}v1{{ else }}{{ .old }}{{ end }}
{{- end }}

{{/* sluice.integrations.context (dict "root" . "more" …) is what ext_authz is told besides the request: the domain, and more. */}}
{{- define "sluice.integrations.context" -}}
{{- $context := deepCopy (.more | default dict) -}}
{{- with .root.Values.integrations.domain }}{{ $context = set $context "domain" . }}{{ end -}}
{{- toYaml $context -}}
{{- end }}
