{{/* Settings of extauthz serve: all by SLUICE_… variables, so that a rollback brings them back with the rest of the pod. */}}

{{/* sluice.variables is NAME: value of each setting that is no secret. */}}
{{- define "sluice.variables" -}}
{{- $v := dict
  "SLUICE_POLICY" "/etc/sluice/policy"
  "SLUICE_STORE" (ternary "memory" "redis" (eq .Values.store.type "memory"))
  "SLUICE_MEMORY_LIMIT" .Values.store.memory.limit
  "SLUICE_GRPC_ADDR" (printf ":%s" (include "sluice.grpcPort" .))
  "SLUICE_ADMIN_ADDR" (printf ":%s" (include "sluice.adminPort" .))
  "SLUICE_ADMIN_HOSTS" (include "sluice.adminHosts" .)
  "SLUICE_DRAIN_DELAY" (printf "%vs" .Values.drain.delaySeconds)
  "SLUICE_DRAIN_TIME" (printf "%vs" .Values.drain.timeSeconds) -}}
{{- with dig "limits" "memory" "" (.Values.resources | default dict) }}{{ $_ := set $v "GOMEMLIMIT" (include "sluice.goMemory" .) }}{{ end -}}
{{- if .Values.http.enabled }}{{ $_ := set $v "SLUICE_HTTP_ADDR" (printf ":%s" (include "sluice.httpPort" .)) }}{{ end -}}
{{- range $name, $value := .Values.settings -}}
{{- $_ := set $v (include "sluice.variable" $name) (include "sluice.text" $value) -}}
{{- end -}}
{{- range include "sluice.secretFiles" . | fromYamlArray -}}
{{- $_ := set $v (include "sluice.variable" .setting) (printf "/etc/sluice/secrets/%s" .setting) -}}
{{- end -}}
{{- merge $v (include "sluice.redisVariables" . | fromYaml) (include "sluice.tlsVariables" . | fromYaml) | toYaml -}}
{{- end }}

{{- define "sluice.redisVariables" -}}
{{- if eq .Values.store.type "valkey" }}
SLUICE_REDIS_URL: redis://{{ include "sluice.valkeyName" . }}:6379
{{- else if eq .Values.store.type "redis" }}
{{- with .Values.store.redis }}
SLUICE_REDIS_URL: {{ .url | quote }}
{{- with .auth.username }}
SLUICE_REDIS_USERNAME: {{ . | quote }}
{{- end }}
{{- with .sentinelAuth.username }}
SLUICE_REDIS_SENTINEL_USERNAME: {{ . | quote }}
{{- end }}
{{- with .tls.serverName }}
SLUICE_REDIS_TLS_SERVER_NAME: {{ . | quote }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{- define "sluice.tlsVariables" -}}
{{- if .Values.tls.enabled }}
SLUICE_TLS_MIN_VERSION: {{ .Values.tls.minVersion | quote }}
{{- with .Values.tls.client.sans }}
SLUICE_GRPC_TLS_CLIENT_SAN: {{ join "," . | quote }}
{{- if $.Values.tls.http }}
SLUICE_HTTP_TLS_CLIENT_SAN: {{ join "," . | quote }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{/* sluice.variable is the variable of a setting: SLUICE_LOG_LEVEL of log-level. */}}
{{- define "sluice.variable" -}}
{{- printf "SLUICE_%s" (. | upper | replace "-" "_") -}}
{{- end }}

{{/* sluice.text is a value as a variable has it: a list with commas, a number in full. */}}
{{- define "sluice.text" -}}
{{- if kindIs "slice" . }}{{ join "," . }}{{ else if kindIs "float64" . }}{{ printf "%.0f" . }}{{ else }}{{ . }}{{ end -}}
{{- end }}

{{/* sluice.adminHosts are the names by which the admin port may be asked: those of the headless Service. */}}
{{- define "sluice.adminHosts" -}}
{{- $name := include "sluice.headlessName" . -}}
{{- printf "%s,%s.%s,%s.%s.svc,%s" $name $name .Release.Namespace $name .Release.Namespace (include "sluice.headlessHost" .) -}}
{{- end }}

{{/*
sluice.secretFiles lists the settings that are files with something secret in it,
each with the Secret and its key, and the value that names it. What the chart has
made by others (made) need not be there yet.
*/}}
{{- define "sluice.secretFiles" -}}
{{- if eq .Values.store.type "redis" }}
{{- with .Values.store.redis }}
{{- if .auth.existingSecret }}
- {setting: redis-password-file, secret: {{ .auth.existingSecret }}, key: {{ .auth.passwordKey }}, value: store.redis.auth.existingSecret}
{{- end }}
{{- if .sentinelAuth.existingSecret }}
- {setting: redis-sentinel-password-file, secret: {{ .sentinelAuth.existingSecret }}, key: {{ .sentinelAuth.passwordKey }}, value: store.redis.sentinelAuth.existingSecret}
{{- end }}
{{- if .tls.existingSecret }}
{{- range $setting, $key := dict "redis-tls-ca" .tls.caKey "redis-tls-cert" .tls.certKey "redis-tls-key" .tls.keyKey }}
{{- if $key }}
- {setting: {{ $setting }}, secret: {{ $.Values.store.redis.tls.existingSecret }}, key: {{ $key }}, value: store.redis.tls.existingSecret}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- with .Values.store.hashKey }}{{ if .existingSecret }}
- {setting: hash-key-file, secret: {{ .existingSecret }}, key: {{ .key }}, value: store.hashKey.existingSecret}
{{- end }}{{ end }}
{{- with .Values.admin.token }}{{ if .existingSecret }}
- {setting: admin-token-file, secret: {{ .existingSecret }}, key: {{ .key }}, value: admin.token.existingSecret}
{{- end }}{{ end }}
{{- if .Values.tls.enabled }}
{{- range $port := .Values.tls.http | ternary (list "grpc" "http") (list "grpc") }}
- {setting: {{ $port }}-tls-cert, secret: {{ include "sluice.tlsSecret" $ }}, key: tls.crt, value: tls.existingSecret, made: {{ $.Values.tls.certManager.enabled }}}
- {setting: {{ $port }}-tls-key, secret: {{ include "sluice.tlsSecret" $ }}, key: tls.key, value: tls.existingSecret, made: {{ $.Values.tls.certManager.enabled }}}
{{- with $.Values.tls.client }}{{ if .existingCASecret }}
- {setting: {{ $port }}-tls-client-ca, secret: {{ .existingCASecret }}, key: {{ .caKey }}, value: tls.client.existingCASecret}
{{- end }}{{ end }}
{{- end }}
{{- end }}
{{- end }}

{{- define "sluice.tlsSecret" -}}
{{- .Values.tls.existingSecret | default (printf "%s-tls" (include "sluice.fullname" .)) -}}
{{- end }}

{{/* sluice.secretVariables lists the variables that are taken from Secrets. */}}
{{- define "sluice.secretVariables" -}}
{{- if eq .Values.store.type "redis" }}
{{- with .Values.store.redis.auth }}{{ if .usernameKey }}
- {name: SLUICE_REDIS_USERNAME, secret: {{ .existingSecret }}, key: {{ .usernameKey }}, value: store.redis.auth.existingSecret}
{{- end }}{{ end }}
{{- with .Values.store.redis.sentinelAuth }}{{ if .usernameKey }}
- {name: SLUICE_REDIS_SENTINEL_USERNAME, secret: {{ .existingSecret }}, key: {{ .usernameKey }}, value: store.redis.sentinelAuth.existingSecret}
{{- end }}{{ end }}
{{- end }}
{{- end }}

{{/* sluice.env is the container's list of variables. */}}
{{- define "sluice.env" -}}
{{- $given := dict -}}
{{- range .Values.extraEnv }}{{ $_ := set $given .name true }}{{ end -}}
{{- range $name, $value := include "sluice.variables" . | fromYaml }}
{{- if not (hasKey $given $name) }}
- name: {{ $name }}
  value: {{ $value | quote }}
{{- end }}
{{- end }}
{{- range include "sluice.secretVariables" . | fromYamlArray }}
- name: {{ .name }}
  valueFrom:
    secretKeyRef:
      name: {{ .secret }}
      key: {{ .key }}
{{- end }}
{{- with .Values.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* sluice.bytes is a quantity of Kubernetes', or a size of ours, in bytes. */}}
{{- define "sluice.bytes" -}}
{{- $text := toString . -}}
{{- $unit := regexFind "[A-Za-z]*$" $text -}}
{{- $sizes := dict "k" 1e3 "M" 1e6 "G" 1e9 "T" 1e12 "Ki" 1024 "Mi" 1048576 "Gi" 1073741824 "Ti" 1099511627776 -}}
{{- mulf (trimSuffix $unit $text | float64) (get $sizes (trimSuffix "B" $unit) | default 1) | floor | int64 -}}
{{- end }}

{{/* sluice.goMemory is nine tenths of a limit on memory: what Go may use before it collects without rest. */}}
{{- define "sluice.goMemory" -}}
{{- div (mul (include "sluice.bytes" . | int64) 9) 10 -}}
{{- end }}
