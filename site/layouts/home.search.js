{{- /* The index for searching: a title, a heading, where it is, and the words of each section. */ -}}
{{- $list := slice -}}
{{- range where site.Pages "Kind" "in" (slice "home" "page") -}}
  {{- $source := .Params.source | default "README.md" -}}
  {{- $url := partialCached "url.html" $source $source | strings.TrimPrefix "/" -}}
  {{- $title := .Title -}}
  {{- if .IsHome -}}{{- $title = "terrarium" -}}{{- end -}}
  {{- $content := .Content | replaceRE `(?s)<a class="anchor".*?</a>` "" | replaceRE `(<(h[1-4]) id=)` "\x01$1" | replaceRE `(</(?:td|th|li|p|h[1-6])>|<br>)` "$1 " -}}
  {{- range split $content "\x01" -}}
    {{- $heading := "" -}}{{- $anchor := "" -}}{{- $level := "1" -}}
    {{- with findRESubmatch `(?s)^<h([1-4]) id="([^"]*)">(.*?)</h` . 1 -}}
      {{- $level = index (index . 0) 1 -}}
      {{- if ne $level "1" -}}
        {{- $anchor = index (index . 0) 2 -}}
        {{- $heading = index (index . 0) 3 | plainify | htmlUnescape | strings.TrimSpace -}}
      {{- end -}}
    {{- end -}}
    {{- $text := . | replaceRE `(?s)^<h[1-4] .*?</h[1-4]>` "" | plainify | htmlUnescape | replaceRE `\s+` " " | strings.TrimSpace -}}
    {{- if or $text $heading -}}
      {{- $list = $list | append (dict "title" $title "heading" $heading "url" (printf "%s%s" $url (cond (eq $anchor "") "" (printf "#%s" $anchor))) "text" $text) -}}
    {{- end -}}
  {{- end -}}
{{- end -}}
window.searchIndex = {{ $list | jsonify | safeJS }};
