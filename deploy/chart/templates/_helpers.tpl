{{- define "purview.name" -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- end }}

{{- define "purview.labels" -}}
app.kubernetes.io/name: purview
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "purview.selector" -}}
app.kubernetes.io/name: purview
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- /* The address on which everything of the pod's address family is listened for. */ -}}
{{- define "purview.any" -}}
{{- ternary "[::]" "0.0.0.0" (eq .Values.ipFamily "IPv6") -}}
{{- end }}

{{- /* What a shutdown takes at most, as `purview check` sums it: order, drain or lame duck, gateway, flush, console,
       leave. */ -}}
{{- define "purview.grace" -}}
{{- $longest := max (int .Values.cluster.drainSeconds) (int .Values.service.lameDuckSeconds) -}}
{{- add 4 $longest 5 5 2 10 (int .Values.graceMarginSeconds) -}}
{{- end }}

{{- define "purview.toml" -}}
{{- $any := include "purview.any" . -}}
[server]
grace = "{{ include "purview.grace" . }}s"

[gateway]
ws = "{{ $any }}:7711"
tcp = "{{ $any }}:7712"
lame_duck = "{{ int .Values.service.lameDuckSeconds }}s"
{{- with .Values.service.proxies }}
proxies = {{ toJson . }}
{{- end }}

[console]
listen = "{{ $any }}:7780"
token_file = "/run/secrets/purview/console.token"
command_token_file = "/run/secrets/purview/command.token"

[cluster]
name = {{ .Values.cluster.name | quote }}
listen = "{{ $any }}:7790"
etcd = {{ .Values.cluster.etcd | quote }}
{{- with .Values.cluster.etcdUser }}
etcd_user = {{ . | quote }}
etcd_password_file = "/run/secrets/purview/etcd.password"
{{- end }}
postgres = {{ .Values.cluster.postgres | quote }}
{{- if ne .Values.cluster.postgres "off" }}
postgres_password_file = "/run/secrets/purview/postgres.password"
{{- end }}
drain = "{{ int .Values.cluster.drainSeconds }}s"
insecure = {{ .Values.cluster.insecure }}
{{- if eq .Values.tls.mode "csi" }}

[cluster.tls]
certificate = "/run/tls/tls.crt"
key = "/run/tls/tls.key"
authority = "/run/tls/ca.crt"
{{- end }}
{{- if .Values.logic.enabled }}

[logic]
listen = "{{ $any }}:7795"
token_file = "/run/secrets/purview/logic.token"
{{- if eq .Values.tls.mode "csi" }}

[logic.tls]
certificate = "/run/tls/tls.crt"
key = "/run/tls/tls.key"
{{- end }}
{{- end }}

[token]
secret_file = "/run/secrets/purview/token.secret"

{{ .Values.scenes }}
{{- end }}
