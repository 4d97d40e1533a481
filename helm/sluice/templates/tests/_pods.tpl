{{/*
sluice.testPods is name: arguments of the pods of `helm test`: is the policy good, does
the Service answer health, and does it answer as it would a proxy. Where the Service speaks
TLS, the latter two need a Secret to do so.
*/}}
{{- define "sluice.testPods" -}}
policy:
  {{- (include "sluice.validate" . | fromYaml).args | toYaml | nindent 2 }}
{{- if or (not .Values.tls.enabled) .Values.tests.tls.existingSecret }}
{{- $addr := printf "%s:%s" (include "sluice.serviceHost" .) (include "sluice.grpcPort" .) }}
health:
  - health
  - --addr={{ $addr }}
  - --wait=30s
  {{- include "sluice.testTLS" . | nindent 2 }}
requests:
  - bench
  - ext_authz
  - {{ $addr }}
  - --requests=20
  {{- include "sluice.testTLS" . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "sluice.testTLS" -}}
{{- with .Values.tests.tls -}}
{{- if .existingSecret -}}
- --tls-ca=/etc/sluice/tls/{{ .caKey }}
{{- if .certKey }}
- --tls-cert=/etc/sluice/tls/{{ .certKey }}
- --tls-key=/etc/sluice/tls/{{ .keyKey }}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end }}

{{- define "sluice.testMounts" -}}
- name: policy
  mountPath: /etc/sluice/policy
  readOnly: true
{{- if .Values.tests.tls.existingSecret }}
- name: tls
  mountPath: /etc/sluice/tls
  readOnly: true
{{- end }}
{{- end }}

{{- define "sluice.testVolumes" -}}
{{- include "sluice.policyVolume" . }}
{{- with .Values.tests.tls.existingSecret }}
- name: tls
  secret:
    secretName: {{ . }}
    defaultMode: 288 # 0440
{{- end }}
{{- end }}
