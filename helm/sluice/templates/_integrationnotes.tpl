{{/* sluice.integrationNotes says, for each gateway that was asked for, what is left to do there and how to see that it works. */}}
{{- define "sluice.integrationNotes" -}}
{{- $name := include "sluice.fullname" . -}}
{{- with .Values.integrations }}
{{- if .envoyGateway.enabled }}
   Envoy Gateway: nothing is left to do. Look for Accepted:
     kubectl -n {{ .envoyGateway.namespace | default $.Release.Namespace }} get securitypolicy -o wide
{{- end }}
{{- if and .istio.enabled (not .istio.meshConfig.enabled) }}
   Istio: name the provider in MeshConfig, without which the AuthorizationPolicy denies everything:
     {{- include "sluice.integrations.istio.provider" $ | nindent 5 }}
{{- else if .istio.enabled }}
   Istio: have istiod read the ConfigMap with the provider: SHARED_MESH_CONFIG={{ .istio.meshConfig.name | default (printf "%s-mesh" $name) }} on istiod.
{{- end }}
{{- if .istio.rateLimit.enabled }}
   Istio, RLS: look for envoy.filters.http.ratelimit in
     istioctl proxy-config listeners POD.NAMESPACE -o json
{{- end }}
{{- if .contour.enabled }}
   Contour: name the ExtensionService in each HTTPProxy (spec.virtualhost.authorization.extensionRef):
     {name: {{ $name }}, namespace: {{ $.Release.Namespace }}}
{{- end }}
{{- if or .emissary.authService .emissary.rateLimitService }}
   Emissary: the AuthService holds for all Mappings; RLS for those with labels. Look for errors in
     kubectl -n {{ .emissary.namespace | default $.Release.Namespace }} get authservices,ratelimitservices
{{- end }}
{{- if or .kgateway.extAuth.enabled .kgateway.rateLimit.enabled }}
   kgateway: nothing is left to do. Look for Accepted:
     kubectl -n {{ .kgateway.namespace | default $.Release.Namespace }} get trafficpolicies -o wide
{{- end }}
{{- if .traefik.enabled }}
   Traefik: name the Middleware {{ $name }} in each router, as {{ .traefik.namespace | default $.Release.Namespace }}-{{ $name }}@kubernetescrd in an Ingress' annotation.
{{- end }}
{{- end }}
{{- end }}
