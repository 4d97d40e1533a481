{{- define "sluice.valkeyName" -}}
{{- include "sluice.fullname" . }}-valkey
{{- end }}

{{- define "sluice.valkeySelectorLabels" -}}
app.kubernetes.io/name: {{ include "sluice.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: valkey
{{- end }}

{{/* sluice.valkeyMetadata is an object's metadata; all objects of Valkey have its name. */}}
{{- define "sluice.valkeyMetadata" -}}
{{- include "sluice.metadata" (dict "root" . "name" (include "sluice.valkeyName" .) "component" "valkey") -}}
{{- end }}
