{{/*
sluice.integrations.istio.workloads (dict "root" . "of" … "namespace" … "selector" … "targetRefs" … "all" …) refuses objects
that would hold for other workloads than those that were meant.
*/}}
{{- define "sluice.integrations.istio.workloads" -}}
{{- if and .selector .targetRefs -}}
{{- include "sluice.integrations.refuse" (dict "of" .of "because" "both selector and targetRefs; Istio takes one of them: selector for gateways and sidecars by their labels, targetRefs for Gateways and waypoints") -}}
{{- end -}}
{{- if not (or .selector .targetRefs .all) -}}
{{- include "sluice.integrations.refuse" (dict "of" .of "because" (printf "for which workloads of the namespace %s? Write selector: {istio: ingressgateway}, or targetRefs: [{kind: Gateway, name: waypoint}], or wholeNamespace: true" .namespace)) -}}
{{- end -}}
{{- if and .all (eq .namespace .root.Release.Namespace) -}}
{{- include "sluice.integrations.refuse" (dict "of" (printf "%s.wholeNamespace" .of) "because" (printf "%s is the limiter's own namespace: with a sidecar there, each check would be checked. Choose workloads, or another namespace" .namespace)) -}}
{{- end -}}
{{- end }}

{{/* sluice.integrations.istio.provider is the part of MeshConfig that CUSTOM policies name. */}}
{{- define "sluice.integrations.istio.provider" -}}
extensionProviders:
  - name: {{ .Values.integrations.istio.provider }}
    envoyExtAuthzGrpc:
      service: {{ include "sluice.serviceHost" . }}
      port: {{ include "sluice.grpcPort" . }}
      timeout: {{ include "sluice.integrations.seconds" . }} # Istio's default is 600s
      failOpen: {{ .Values.integrations.failOpen }}
      {{- with .Values.integrations.statusOnError }}
      statusOnError: {{ . | quote }} # Istio's default is 403
      {{- end }}
{{- end }}

{{/* sluice.integrations.istio.routes (dict "context" … "vhost" …) is a patch's match of virtual hosts. */}}
{{- define "sluice.integrations.istio.routes" -}}
context: {{ .context }}
routeConfiguration:
  vhost:
    {{- with .vhost }}
    name: {{ . | quote }}
    {{- end }}
    route:
      action: ANY
{{- end }}
