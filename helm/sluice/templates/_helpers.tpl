{{/* Names. */}}

{{- define "sluice.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 50 | trimSuffix "-" -}}
{{- end }}

{{/* sluice.fullname leaves room for the suffixes that objects have. */}}
{{- define "sluice.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" -}}
{{- else if contains (include "sluice.name" .) .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "sluice.name" .) | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end }}

{{/* sluice.serviceName is the Service with one address for all pods. */}}
{{- define "sluice.serviceName" -}}
{{- include "sluice.fullname" . -}}
{{- end }}

{{/* sluice.headlessName is the Service that names each pod. */}}
{{- define "sluice.headlessName" -}}
{{- include "sluice.fullname" . }}-headless
{{- end }}

{{/* sluice.serviceHost is the whole name of the first, sluice.headlessHost of the second. */}}
{{- define "sluice.serviceHost" -}}
{{- printf "%s.%s.svc.%s" (include "sluice.serviceName" .) .Release.Namespace .Values.clusterDomain -}}
{{- end }}

{{- define "sluice.headlessHost" -}}
{{- printf "%s.%s.svc.%s" (include "sluice.headlessName" .) .Release.Namespace .Values.clusterDomain -}}
{{- end }}

{{/* Ports, as numbers; in a Service and a container they are called grpc, http and admin. */}}
{{- define "sluice.grpcPort" -}}
{{- .Values.grpc.port | int -}}
{{- end }}

{{- define "sluice.httpPort" -}}
{{- .Values.http.port | int -}}
{{- end }}

{{- define "sluice.adminPort" -}}
{{- .Values.admin.port | int -}}
{{- end }}

{{/* sluice.selectorLabels never change in a release's life. */}}
{{- define "sluice.selectorLabels" -}}
app.kubernetes.io/name: {{ include "sluice.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: limiter
{{- end }}

{{/* sluice.labels are on every object of the limiter. */}}
{{- define "sluice.labels" -}}
{{- $own := dict
  "helm.sh/chart" (printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-")
  "app.kubernetes.io/version" (.Values.image.tag | default .Chart.AppVersion | trunc 63 | trimSuffix "-")
  "app.kubernetes.io/part-of" "sluice"
  "app.kubernetes.io/managed-by" .Release.Service -}}
{{- merge (include "sluice.selectorLabels" . | fromYaml) $own .Values.commonLabels | toYaml -}}
{{- end }}

{{/*
sluice.metadata (dict "root" . "name" … "labels" … "annotations" … "namespace" … "component" …)
is an object's metadata, by default in the release's namespace and of the limiter.
*/}}
{{- define "sluice.metadata" -}}
name: {{ .name }}
namespace: {{ .namespace | default .root.Release.Namespace }}
labels:
  {{- $component := dict "app.kubernetes.io/component" (.component | default "limiter") }}
  {{- merge $component (include "sluice.labels" .root | fromYaml) (.labels | default dict) | toYaml | nindent 2 }}
{{- with merge (dict) (.annotations | default dict) .root.Values.commonAnnotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
