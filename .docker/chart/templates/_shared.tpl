{{- define "dropway.labels" -}}
app.kubernetes.io/name: dropway
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .plane }}
{{- end }}

{{- define "dropway.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default (printf "%s-roles" .Chart.AppVersion) }}
{{- end }}

{{/* The settings of a plane: what the chart knows, what all share, what the plane has of its own, and secrets by reference. */}}
{{- define "dropway.environment" -}}
{{- $settings := merge (dict) .own (.extra | default dict) (.root.Values.settings | default dict) }}
{{- range $name, $value := $settings }}
- name: {{ $name }}
  value: {{ $value | quote }}
{{- end }}
{{- range $name := .secrets }}
- name: {{ $name }}
  valueFrom:
    secretKeyRef: { name: {{ $.root.Values.secretName }}, key: {{ $name }} }
{{- end }}
{{- range $name, $from := .root.Values.secretSettings }}
- name: {{ $name }}
  valueFrom:
    secretKeyRef: { name: {{ $from.name }}, key: {{ $from.key | quote }} }
{{- end }}
{{- end }}

{{/* Nobody, on a file system that cannot be written, without any privilege. */}}
{{- define "dropway.podSecurity" -}}
runAsNonRoot: true
runAsUser: 1000
runAsGroup: 1000
fsGroup: 1000
seccompProfile: { type: RuntimeDefault }
{{- end }}

{{- define "dropway.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: { drop: [ALL] }
{{- end }}

{{/* Asks `port`; a start may take `startTries` times two seconds. One that fails ends by itself before. */}}
{{- define "dropway.probes" -}}
startupProbe:
  httpGet: { path: /healthz, port: {{ .port }} }
  periodSeconds: 2
  failureThreshold: {{ .startTries }}
livenessProbe:
  httpGet: { path: /healthz, port: {{ .port }} }
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 6
readinessProbe:
  httpGet: { path: /readyz, port: {{ .port }} }
  periodSeconds: 1
  failureThreshold: 1
{{- end }}
