{{/* sluice.image (dict "image" … "tag" …) is an image's whole name; tag is for one that has none. */}}
{{- define "sluice.image" -}}
{{- $name := list .image.registry .image.repository | compact | join "/" -}}
{{- if .image.digest -}}
{{- printf "%s@%s" $name .image.digest -}}
{{- else -}}
{{- printf "%s:%s" $name (.image.tag | default .tag) -}}
{{- end -}}
{{- end }}

{{- define "sluice.ownImage" -}}
{{- include "sluice.image" (dict "image" .Values.image "tag" .Chart.AppVersion) -}}
{{- end }}

{{- define "sluice.serviceAccountName" -}}
{{- .Values.serviceAccount.name | default (ternary (include "sluice.fullname" .) "default" .Values.serviceAccount.create) -}}
{{- end }}

{{/* sluice.policyName is the ConfigMap with the policy. */}}
{{- define "sluice.policyName" -}}
{{- .Values.policy.existingConfigMap | default (printf "%s-policy" (include "sluice.fullname" .)) -}}
{{- end }}

{{/* sluice.policyFiles are the policy files of a ConfigMap of ours: name: text. */}}
{{- define "sluice.policyFiles" -}}
{{- .Values.policy.files | default (dict "policy.yaml" (.Files.Get "files/policy.yaml")) | toYaml -}}
{{- end }}

{{/* sluice.podLabels are without the chart's version: a new one alone replaces no pod. */}}
{{- define "sluice.podLabels" -}}
{{- merge (include "sluice.selectorLabels" . | fromYaml) .Values.podLabels .Values.commonLabels | toYaml -}}
{{- end }}

{{/* sluice.container is what our own containers have alike, those of tests too. */}}
{{- define "sluice.container" -}}
image: {{ include "sluice.ownImage" . }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext:
  {{- toYaml .Values.securityContext | nindent 2 }}
{{- end }}

{{/* sluice.podSpec is what our own pods have alike, those of tests too. */}}
{{- define "sluice.podSpec" -}}
automountServiceAccountToken: false
enableServiceLinks: false
serviceAccountName: {{ include "sluice.serviceAccountName" . }}
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
securityContext:
  {{- toYaml .Values.podSecurityContext | nindent 2 }}
{{- end }}

{{/* sluice.placement is where pods run, and what they are told of the network there. */}}
{{- define "sluice.placement" -}}
{{- range $field := list "priorityClassName" "schedulerName" "runtimeClassName" "dnsPolicy" "dnsConfig" "hostAliases" "nodeSelector" "tolerations" "affinity" }}
{{- with index $.Values $field }}
{{ dict $field . | toYaml }}
{{- end }}
{{- end }}
{{- with include "sluice.spread" . | trim }}
topologySpreadConstraints:
  {{- . | nindent 2 }}
{{- end }}
{{- end }}

{{/* sluice.spread is a list of constraints, each with our pods for those that it counts. */}}
{{- define "sluice.spread" -}}
{{- $own := dict "labelSelector" (dict "matchLabels" (include "sluice.selectorLabels" . | fromYaml)) -}}
{{- $constraints := .Values.topologySpreadConstraints -}}
{{- if and (not $constraints) .Values.topologySpread.enabled -}}
{{- range $key := list "topology.kubernetes.io/zone" "kubernetes.io/hostname" -}}
{{- $constraints = append $constraints (dict "maxSkew" 1 "topologyKey" $key "whenUnsatisfiable" "ScheduleAnyway" "matchLabelKeys" (list "pod-template-hash")) -}}
{{- end -}}
{{- end -}}
{{- range $constraints }}
- {{ merge (dict) . $own | toYaml | nindent 2 | trim }}
{{- end -}}
{{- end }}

{{/* sluice.probe (dict "root" . "service" … "path" … "times" …) asks by gRPC, or the admin port where gRPC is encrypted. */}}
{{- define "sluice.probe" -}}
{{- if .root.Values.tls.enabled -}}
httpGet:
  port: admin
  path: {{ .path }}
{{- else -}}
grpc:
  port: {{ include "sluice.grpcPort" .root }}
  service: {{ .service }}
{{- end }}
{{ toYaml .times }}
{{- end }}

{{/* sluice.grace is how long a pod may take to end, in seconds. */}}
{{- define "sluice.grace" -}}
{{- .Values.terminationGracePeriodSeconds | default (include "sluice.drain" . | int | add 5) -}}
{{- end }}

{{/* sluice.drain is how long a drain takes at most, the hook before it included. */}}
{{- define "sluice.drain" -}}
{{- add (dig "preStop" "sleep" "seconds" 0 (.Values.lifecycle | default dict) | int) .Values.drain.delaySeconds .Values.drain.timeSeconds -}}
{{- end }}

{{- define "sluice.containerPorts" -}}
- name: grpc
  containerPort: {{ include "sluice.grpcPort" . }}
  protocol: TCP
{{- if .Values.http.enabled }}
- name: http
  containerPort: {{ include "sluice.httpPort" . }}
  protocol: TCP
{{- end }}
- name: admin
  containerPort: {{ include "sluice.adminPort" . }}
  protocol: TCP
{{- end }}

{{/* sluice.initContainers are yours, and the one that keeps a faulty policy from replacing pods that work. */}}
{{- define "sluice.initContainers" -}}
{{- with .Values.initContainers -}}
{{ toYaml . }}
{{ end -}}
{{- if .Values.policy.validate -}}
- name: validate-policy
  {{- include "sluice.container" . | nindent 2 }}
  {{- include "sluice.validate" . | nindent 2 }}
{{- end -}}
{{- end }}

{{/* sluice.validate makes a container check the policy as the server will read it. */}}
{{- define "sluice.validate" -}}
args:
  - validate
  {{- with dig "domain" "" (.Values.settings | default dict) }}
  - {{ printf "--domain=%s" . | quote }}
  {{- end }}
  - /etc/sluice/policy
resources:
  {{- toYaml .Values.resources | nindent 2 }}
volumeMounts:
  - name: policy
    mountPath: /etc/sluice/policy
    readOnly: true
{{- end }}

{{/* A folder and never a subPath, which the kubelet would not bring up to date. */}}
{{- define "sluice.volumeMounts" -}}
- name: policy
  mountPath: /etc/sluice/policy
  readOnly: true
{{- if include "sluice.secretFiles" . | fromYamlArray }}
- name: secrets
  mountPath: /etc/sluice/secrets
  readOnly: true
{{- end }}
{{- with .Values.extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "sluice.volumes" -}}
{{- include "sluice.policyVolume" . }}
{{- with include "sluice.secretFiles" . | fromYamlArray }}
- name: secrets
  projected:
    defaultMode: 288 # 0440
    sources:
      {{- range . }}
      - secret:
          name: {{ .secret }}
          items:
            - key: {{ .key }}
              path: {{ .setting }}
      {{- end }}
{{- end }}
{{- with .Values.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "sluice.policyVolume" -}}
- name: policy
  configMap:
    name: {{ include "sluice.policyName" . }}
{{- end }}
