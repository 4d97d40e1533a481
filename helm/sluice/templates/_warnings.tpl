{{/* sluice.warnings lists what the installer should know, a sentence each. */}}
{{- define "sluice.warnings" -}}
{{- if and (not .Values.policy.files) (not .Values.policy.existingConfigMap) }}
- No policy of yours is there yet. The chart's own counts each address and denies nobody; set policy.files or policy.existingConfigMap.
{{- end }}
{{- if eq .Values.store.type "memory" }}
{{- if .Values.store.memory.allowReplicas }}
- Each replica counts for itself, so that N of them let through up to N times what a limit says. Set store.type to redis for limits that hold together.
{{- else }}
- Buckets are in the memory of the one replica. They are full again when its pod is replaced, and if that is lost, Envoy's failure_mode_allow decides until the next one is up. Set store.type to redis for more replicas.
{{- end }}
{{- end }}
{{- if eq .Values.store.type "valkey" }}
- The Valkey that came along is for trials, one pod that keeps nothing and asks for no password. Set store.type to redis and store.redis.url for a server of yours, with maxmemory-policy noeviction.
{{- end }}
{{- if and (ne .Values.store.type "memory") (not .Values.autoscaling.enabled) (lt (int .Values.replicaCount) 2) }}
- There is one replica. Its store is shared, so there can be more; set replicaCount to 2 or more, or autoscaling.enabled.
{{- end }}
{{- if and .Values.tls.enabled .Values.tests.enabled (not .Values.tests.tls.existingSecret) }}
- helm test looks at the policy alone. Name a Secret with the authority's certificate in tests.tls.existingSecret, and it asks the server too.
{{- end }}
{{- end }}
