// Renders a Helm chart with the engine that Helm is made of: Go's text/template, the functions of sprig, and Helm's own
// include, toYaml and required. Debian has these, and not Helm. Missing values are errors, as with `helm lint --strict`.
//
//	go run render-chart.go <folder of the chart> < values.json
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"text/template"

	"github.com/Masterminds/sprig"
	"sigs.k8s.io/yaml"
)

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func main() {
	folder := os.Args[1]
	var values map[string]interface{}
	must(json.NewDecoder(os.Stdin).Decode(&values))
	text, err := os.ReadFile(filepath.Join(folder, "Chart.yaml"))
	must(err)
	var chart map[string]interface{}
	must(yaml.Unmarshal(text, &chart))

	all := template.New("chart").Option("missingkey=error")
	functions := sprig.TxtFuncMap()
	functions["toYaml"] = func(value interface{}) (string, error) {
		text, err := yaml.Marshal(value)
		return strings.TrimSuffix(string(text), "\n"), err
	}
	functions["include"] = func(name string, data interface{}) (string, error) {
		var out bytes.Buffer
		err := all.ExecuteTemplate(&out, name, data)
		return out.String(), err
	}
	functions["required"] = func(message string, value interface{}) (interface{}, error) {
		if value == nil || value == "" {
			return nil, fmt.Errorf("%s", message)
		}
		return value, nil
	}
	all.Funcs(functions)

	files, err := filepath.Glob(filepath.Join(folder, "templates", "*"))
	must(err)
	for _, file := range files {
		text, err := os.ReadFile(file)
		must(err)
		_, err = all.New(filepath.Base(file)).Parse(string(text))
		must(err)
	}
	data := map[string]interface{}{
		"Values":  values,
		"Chart":   map[string]interface{}{"Name": chart["name"], "Version": chart["version"], "AppVersion": chart["appVersion"]},
		"Release": map[string]interface{}{"Name": "pages", "Namespace": "default", "Service": "Helm"},
	}
	for _, file := range files {
		if strings.HasSuffix(file, ".yaml") {
			fmt.Println("---")
			must(all.ExecuteTemplate(os.Stdout, filepath.Base(file), data))
		}
	}
}
