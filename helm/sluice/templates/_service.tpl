{{/* sluice.serviceSpec is what both Services have alike. */}}
{{- define "sluice.serviceSpec" -}}
sessionAffinity: None
{{- with .Values.service.ipFamilyPolicy }}
ipFamilyPolicy: {{ . }}
{{- end }}
{{- with .Values.service.ipFamilies }}
ipFamilies:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.service.trafficDistribution }}
trafficDistribution: {{ . }}
{{- end }}
selector:
  {{- include "sluice.selectorLabels" . | nindent 2 }}
{{- end }}

{{/* sluice.servicePorts are the ports that proxies ask at. */}}
{{- define "sluice.servicePorts" -}}
- name: grpc
  port: {{ include "sluice.grpcPort" . }}
  targetPort: grpc
  protocol: TCP
  appProtocol: {{ include "sluice.appProtocol" . }}
{{- if .Values.http.enabled }}
- name: http
  port: {{ include "sluice.httpPort" . }}
  targetPort: http
  protocol: TCP
  appProtocol: {{ ternary "https" "http" .Values.tls.http }}
{{- end }}
{{- end }}

{{/* sluice.appProtocol tells gateways how to speak to the gRPC port. */}}
{{- define "sluice.appProtocol" -}}
{{- .Values.service.appProtocol | default (ternary "https" "kubernetes.io/h2c" .Values.tls.enabled) -}}
{{- end }}
