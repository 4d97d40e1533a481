{{/* sluice.ownPeer are the pods of `helm test`, which ask too. */}}
{{- define "sluice.ownPeer" -}}
- podSelector:
    matchLabels:
      app.kubernetes.io/instance: {{ .Release.Name }}
      app.kubernetes.io/component: test
{{- end }}

{{/* sluice.redisEgress lets our pods reach Redis. */}}
{{- define "sluice.redisEgress" -}}
ports:
  {{- range .Values.networkPolicy.redisPorts }}
  - {port: {{ . }}, protocol: TCP}
  {{- end }}
{{- if eq .Values.store.type "valkey" }}
to:
  - podSelector:
      matchLabels:
        {{- include "sluice.valkeySelectorLabels" . | nindent 8 }}
{{- else }}
{{- with .Values.networkPolicy.redisTo }}
to:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
{{- end }}
