{{/*
What can be told of a policy without our program: that it is YAML of the right
form. The rest is for `extauthz validate`, before a pod starts.
*/}}
{{- define "sluice.checkPolicy" -}}
{{- if .Values.policy.existingConfigMap -}}
{{- if .Values.policy.files -}}
{{- fail "policy.files and policy.existingConfigMap are both set: set only one of them." -}}
{{- end -}}
{{- else -}}
{{- $domains := dict -}}
{{- if gt (include "sluice.policyFiles" . | len) 1000000 -}}
{{- fail "policy.files are over 1 MB together, which no ConfigMap holds: make several of them, and mount them by extraVolumes, extraVolumeMounts and extraArgs: [--policy=DIRECTORY]." -}}
{{- end -}}
{{- range $name, $text := include "sluice.policyFiles" . | fromYaml -}}
{{- if not (regexMatch "^[A-Za-z0-9_][A-Za-z0-9._-]*[.]ya?ml$" $name) -}}
{{- fail (printf "policy.files has a file called %q: a name is letters, digits and ., _ or - between, and ends in .yaml or .yml." $name) -}}
{{- end -}}
{{- $file := fromYaml $text -}}
{{- include "sluice.checkPolicyFile" (dict "name" $name "file" $file) -}}
{{- if and (hasKey $domains $file.domain) (not (hasKey $file "descriptors")) -}}
{{- fail (printf "policy.files: %s and %s have the same domain, %s: put their rules in one file, or give one another domain." (get $domains $file.domain) $name $file.domain) -}}
{{- end -}}
{{- $_ := set $domains $file.domain $name -}}
{{- end -}}
{{- end -}}
{{- end }}

{{- define "sluice.checkPolicyFile" -}}
{{- $where := printf "policy.files: %s" .name -}}
{{- with .file.Error -}}
{{- fail (printf "%s is no YAML of a policy's form (%s): mend it; `extauthz validate` says where." $where .) -}}
{{- end -}}
{{- if not (kindIs "string" .file.domain) -}}
{{- fail (printf "%s has no domain: begin it with a line such as domain: edge." $where) -}}
{{- end -}}
{{- if not (hasKey .file "descriptors") -}}
{{- include "sluice.checkKeys" (dict "where" $where "what" .file "known" (list "domain" "trust" "identities" "exempt" "rules" "headers" "on_error")) -}}
{{- if not (kindIs "slice" .file.rules) -}}
{{- fail (printf "%s has no list of rules: write rules: and under it - name: …, with its limits." $where) -}}
{{- end -}}
{{- range .file.rules -}}
{{- include "sluice.checkRule" (dict "where" $where "rule" .) -}}
{{- end -}}
{{- end -}}
{{- end }}

{{- define "sluice.checkRule" -}}
{{- if not (kindIs "map" .rule) -}}
{{- fail (printf "%s has a rule that is no mapping: write - name: …, with its limits under it." .where) -}}
{{- end -}}
{{- if not .rule.name -}}
{{- fail (printf "%s has a rule without a name: give it one, which keys and metrics carry." .where) -}}
{{- end -}}
{{- $where := printf "%s, rule %v" .where .rule.name -}}
{{- include "sluice.checkKeys" (dict "where" $where "what" .rule "known" (list "name" "match" "per" "missing" "descriptor" "cost" "limits" "unlimited" "overrides" "shadow" "stop" "debt" "max_debt" "lease" "on_error" "deny")) -}}
{{- if not (or (hasKey .rule "limits") (hasKey .rule "unlimited")) -}}
{{- fail (printf "%s has no limits: give it some, such as limits: [{rate: 100/1m}]." $where) -}}
{{- end -}}
{{- end }}

{{- define "sluice.checkKeys" -}}
{{- range $key, $_ := .what -}}
{{- if not (has $key $.known) -}}
{{- fail (printf "%s has %s, which is no field: the fields are %s." $.where $key (join ", " $.known)) -}}
{{- end -}}
{{- end -}}
{{- end }}
