{{/*
What values.schema.json cannot see: values that do not fit together, or do not
fit the cluster. Each refusal says what was found, and what to do.
*/}}
{{- define "sluice.checks" -}}
{{- include "sluice.checkReplicas" . -}}
{{- include "sluice.checkScaling" . -}}
{{- include "sluice.checkMemory" . -}}
{{- include "sluice.checkRedis" . -}}
{{- include "sluice.checkUsers" . -}}
{{- include "sluice.checkPorts" . -}}
{{- include "sluice.checkTLS" . -}}
{{- include "sluice.checkDrain" . -}}
{{- include "sluice.checkEnv" . -}}
{{- include "sluice.checkPolicy" . -}}
{{- include "sluice.checkMonitors" . -}}
{{- include "sluice.checkKubernetes" . -}}
{{- include "sluice.checkReferences" . -}}
{{- end }}

{{- define "sluice.checkReplicas" -}}
{{- if and (eq .Values.store.type "memory") (not .Values.store.memory.allowReplicas) -}}
{{- $what := "" -}}
{{- if .Values.autoscaling.enabled -}}
{{- $what = "autoscaling.enabled is true" -}}
{{- else if gt (int .Values.replicaCount) 1 -}}
{{- $what = printf "replicaCount is %d" (int .Values.replicaCount) -}}
{{- end -}}
{{- with $what -}}
{{- fail (printf "%s, but store.type is memory, in which each replica counts for itself: N replicas let through up to N times the limit. Set store.type to redis (or valkey for a trial), or replicaCount to 1 without autoscaling; if many times the limit is what you want, set store.memory.allowReplicas to true." .) -}}
{{- end -}}
{{- end -}}
{{- end }}

{{- define "sluice.checkScaling" -}}
{{- with .Values.autoscaling -}}
{{- if .enabled -}}
{{- if gt (int .minReplicas) (int .maxReplicas) -}}
{{- fail (printf "autoscaling.minReplicas is %d, more than autoscaling.maxReplicas, %d: set it to as many or fewer." (int .minReplicas) (int .maxReplicas)) -}}
{{- end -}}
{{- if not (or .targetCPUUtilizationPercentage .targetMemoryUtilizationPercentage .metrics) -}}
{{- fail "autoscaling has nothing to go by: set autoscaling.targetCPUUtilizationPercentage, autoscaling.targetMemoryUtilizationPercentage or autoscaling.metrics." -}}
{{- end -}}
{{- range $name, $target := dict "cpu" .targetCPUUtilizationPercentage "memory" .targetMemoryUtilizationPercentage -}}
{{- if and $target (not (dig "requests" $name "" ($.Values.resources | default dict))) -}}
{{- fail (printf "autoscaling goes by a percentage of the %s request, but there is none: set resources.requests.%s." $name $name) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- with .Values.podDisruptionBudget -}}
{{- if and .enabled (kindIs "invalid" .minAvailable) (kindIs "invalid" .maxUnavailable) -}}
{{- fail "podDisruptionBudget has neither maxUnavailable nor minAvailable: set one of them, or podDisruptionBudget.enabled to false." -}}
{{- end -}}
{{- end -}}
{{- end }}

{{- define "sluice.checkMemory" -}}
{{- with dig "limits" "memory" "" (.Values.resources | default dict) -}}
{{- $least := include "sluice.bytes" $.Values.store.memory.limit | int64 | mul 2 -}}
{{- if lt (include "sluice.bytes" . | int64) $least -}}
{{- fail (printf "resources.limits.memory is %v, less than twice store.memory.limit, %s, so a full store would end the pod: set resources.limits.memory to %dMi or more, or store.memory.limit lower." . $.Values.store.memory.limit (div (add $least 1048575) 1048576)) -}}
{{- end -}}
{{- end -}}
{{- end }}

{{- define "sluice.checkRedis" -}}
{{- $type := .Values.store.type -}}
{{- with .Values.store.redis -}}
{{- if and (eq $type "redis") (not .url) -}}
{{- fail "store.type is redis, but store.redis.url is empty: set it to the server's address, such as redis://redis.data.svc:6379/0; or store.type to valkey for a small server that comes along, for trials." -}}
{{- end -}}
{{- if and (ne $type "redis") .url -}}
{{- fail (printf "store.redis.url is set, but store.type is %s: set store.type to redis, or take the url away." $type) -}}
{{- end -}}
{{- if regexMatch "^[a-z+]+://[^/?#]*:[^/?#@]*@" .url -}}
{{- fail "store.redis.url has a password in it, for everybody to read who may read the Deployment: put it in a Secret, name that in store.redis.auth.existingSecret, and the user in store.redis.auth.username." -}}
{{- end -}}
{{- if and .tls.existingSecret (not (hasPrefix "rediss" .url)) -}}
{{- fail "store.redis.tls.existingSecret is set, but store.redis.url does not begin with rediss, which is what speaks TLS: write rediss:// for redis:// (rediss+cluster://, rediss+sentinel://)." -}}
{{- end -}}
{{- if and (not .tls.existingSecret) (or .tls.certKey .tls.keyKey) -}}
{{- fail "store.redis.tls.certKey and keyKey are keys of a Secret, but none is named: set store.redis.tls.existingSecret." -}}
{{- end -}}
{{- if ne (empty .tls.certKey) (empty .tls.keyKey) -}}
{{- fail "store.redis.tls has only one of certKey and keyKey: a certificate needs its key, so set both." -}}
{{- end -}}
{{- if and (or .sentinelAuth.existingSecret .sentinelAuth.username) (not (contains "+sentinel://" .url)) -}}
{{- fail "store.redis.sentinelAuth is set, but store.redis.url names no sentinels: write redis+sentinel://host:26379,host:26379/primary/0, or take sentinelAuth away." -}}
{{- end -}}
{{- end -}}
{{- end }}

{{- define "sluice.checkUsers" -}}
{{- range $name := list "auth" "sentinelAuth" -}}
{{- with index $.Values.store.redis $name -}}
{{- if and .usernameKey (not .existingSecret) -}}
{{- fail (printf "store.redis.%s.usernameKey is a key of a Secret, but none is named: set store.redis.%s.existingSecret." $name $name) -}}
{{- end -}}
{{- if and .usernameKey .username -}}
{{- fail (printf "store.redis.%s has both username and usernameKey: set only one of them." $name) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end }}

{{- define "sluice.checkPorts" -}}
{{- $ports := list (int .Values.grpc.port) (int .Values.admin.port) -}}
{{- if .Values.http.enabled -}}
{{- $ports = append $ports (int .Values.http.port) -}}
{{- if not (dig "http-callers" "" (.Values.settings | default dict)) -}}
{{- fail "http.enabled is true, but nobody in the cluster would be answered: name the networks of the proxies that ask in settings.http-callers, such as [10.0.0.0/8], and what they are in settings.http-dialect." -}}
{{- end -}}
{{- end -}}
{{- if ne (len $ports) (uniq $ports | len) -}}
{{- fail "grpc.port, http.port and admin.port must differ: set them to three different ports." -}}
{{- end -}}
{{- end }}

{{- define "sluice.checkTLS" -}}
{{- with .Values.tls -}}
{{- if not .enabled -}}
{{- if or .existingSecret .certManager.enabled .client.existingCASecret .client.sans .http -}}
{{- fail "tls has settings, but tls.enabled is false, so the ports would be in plain text: set it to true, or take the settings away." -}}
{{- end -}}
{{- else -}}
{{- if and .existingSecret .certManager.enabled -}}
{{- fail "tls.existingSecret is set, and tls.certManager.enabled too: set only one of them." -}}
{{- end -}}
{{- if not (or .existingSecret .certManager.enabled) -}}
{{- fail "tls.enabled is true, but there is no certificate: name a Secret in tls.existingSecret, or set tls.certManager.enabled." -}}
{{- end -}}
{{- if and .certManager.enabled (not .certManager.issuerRef.name) -}}
{{- fail "tls.certManager.enabled is true, but nobody would sign: set tls.certManager.issuerRef, such as {name: my-issuer, kind: ClusterIssuer}." -}}
{{- end -}}
{{- if and .client.sans (not .client.existingCASecret) -}}
{{- fail "tls.client.sans are names in clients' certificates, but none is asked for: name the Secret with their authority in tls.client.existingCASecret." -}}
{{- end -}}
{{- if and .http (not $.Values.http.enabled) -}}
{{- fail "tls.http is true, but http.enabled is false: set it to true too." -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end }}

{{- define "sluice.checkDrain" -}}
{{- $grace := include "sluice.grace" . | int -}}
{{- $drain := include "sluice.drain" . | int -}}
{{- if lt $grace $drain -}}
{{- fail (printf "terminationGracePeriodSeconds is %d, but drain and the preStop hook take up to %d s, so requests under way would be cut off: set it to %d or more, or leave it empty." $grace $drain (add $drain 5)) -}}
{{- end -}}
{{- end }}

{{/* A variable said twice would leave open which holds. */}}
{{- define "sluice.checkEnv" -}}
{{- $ours := include "sluice.variables" . | fromYaml -}}
{{- range include "sluice.secretVariables" . | fromYamlArray }}{{ $_ := set $ours .name "" }}{{ end -}}
{{- $said := dict -}}
{{- range .Values.extraEnv -}}
{{- if hasKey $said .name -}}
{{- fail (printf "extraEnv has %s twice: say it once." .name) -}}
{{- end -}}
{{- $_ := set $said .name true -}}
{{- if and (hasKey $ours .name) (hasPrefix "SLUICE_" .name) -}}
{{- fail (printf "extraEnv has %s, which other values decide: for log-level say settings.log-level, for addresses grpc, http and admin, for the rest store, tls, drain and policy. Set it there." .name) -}}
{{- end -}}
{{- end -}}
{{- range .Values.extraVolumes -}}
{{- if has .name (list "policy" "secrets") -}}
{{- fail (printf "extraVolumes has one called %s, which is ours: give it another name." .name) -}}
{{- end -}}
{{- end -}}
{{- end }}

{{- define "sluice.checkMonitors" -}}
{{- if and .Values.serviceMonitor.enabled .Values.podMonitor.enabled -}}
{{- fail "serviceMonitor.enabled and podMonitor.enabled are both true, so that everything would be counted twice: set only one of them." -}}
{{- end -}}
{{- $names := list -}}
{{- range (.Files.Get "alerts/sluice.yaml" | fromYaml).groups }}{{ range .rules }}{{ $names = append $names .alert }}{{ end }}{{ end -}}
{{- range .Values.prometheusRule.disabled -}}
{{- if not (has . $names) -}}
{{- fail (printf "prometheusRule.disabled has %s, which is no alert: the alerts are %s." . (join ", " $names)) -}}
{{- end -}}
{{- end -}}
{{- end }}

{{- define "sluice.checkKubernetes" -}}
{{- $version := .Capabilities.KubeVersion.Version -}}
{{- with .Values.service.trafficDistribution -}}
{{- $least := ternary "1.31" "1.34" (eq . "PreferClose") -}}
{{- if semverCompare (printf "<%s.0-0" $least) $version -}}
{{- fail (printf "service.trafficDistribution is %s, which Kubernetes has from %s on, but this is %s: leave it empty." . $least $version) -}}
{{- end -}}
{{- end -}}
{{- if and (dig "preStop" "sleep" "" (.Values.lifecycle | default dict)) (semverCompare "<1.30.0-0" $version) -}}
{{- fail (printf "lifecycle.preStop.sleep is set, which Kubernetes has from 1.30 on, but this is %s: use drain.delaySeconds, which does the same everywhere." $version) -}}
{{- end -}}
{{- end }}
