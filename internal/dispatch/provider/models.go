package provider

import (
	_ "embed"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/pelletier/go-toml/v2"
)

// ModelTable says which models there are. It is data, and out of date as soon
// as a provider has a new one.
type ModelTable struct {
	AsOf string               `json:"asOf"`
	CLIs map[string]CLIModels `json:"clis"`
}

// CLIModels are the models of one CLI, and By says who told of them.
type CLIModels struct {
	Models []string `json:"models"`
	By     string   `json:"by"`
}

//go:embed models.json
var builtinModels []byte

// Models reads the operator's own table, "" for none. A CLI that it leaves out
// has the models that are built in.
func Models(own string) (ModelTable, error) {
	t, err := readModels(builtinModels)
	if err != nil || own == "" {
		return t, err
	}
	theirs, err := readModels([]byte(own))
	if err != nil {
		return ModelTable{}, &RefusedError{Field: "models.json", CLI: "all", Why: err.Error()}
	}
	for cli, m := range t.CLIs {
		m.By += ", built in, as of " + t.AsOf
		if said, ok := theirs.CLIs[cli]; ok {
			m = CLIModels{Models: said.Models, By: strings.TrimSuffix("the operator's models.json: "+said.By, ": ")}
		}
		t.CLIs[cli] = m
	}
	t.AsOf = theirs.AsOf
	return t, nil
}

func readModels(text []byte) (t ModelTable, err error) {
	if err = json.Unmarshal(text, &t, json.RejectUnknownMembers(true)); err != nil {
		return t, fmt.Errorf("it is no table of models: %w", err)
	}
	for cli := range t.CLIs {
		if adapters[cli] == nil {
			return t, fmt.Errorf("there is no CLI %q", cli)
		}
	}
	return t, nil
}

// Configured is the model that the operator's settings name for a CLI, and where
// they do; "" where they name none.
func Configured(cli string, env func(string) string, extra []string, files map[string]string) (model, where string) {
	for _, name := range adapters[cli].modelEnv {
		for _, kv := range extra {
			if value, ok := strings.CutPrefix(kv, name+"="); ok {
				return value, "the operator's " + cli + ".env"
			}
		}
		if value := env(name); value != "" {
			return value, name
		}
	}
	in := adapters[cli].modelIn
	settings := map[string]any{}
	read := func(text []byte, v any) error { return toml.Unmarshal(text, v) }
	if strings.HasSuffix(in.file, ".json") {
		read = func(text []byte, v any) error { return json.Unmarshal(text, v) }
	}
	if files[in.file] == "" || read([]byte(files[in.file]), &settings) != nil {
		return "", ""
	}
	var at any = settings
	for key := range strings.SplitSeq(in.key, ".") {
		table, _ := at.(map[string]any)
		at = table[key]
	}
	model, _ = at.(string)
	if model == "" {
		return "", ""
	}
	return model, "the operator's " + in.file
}

// setting is a place in a file of settings.
type setting struct{ file, key string }
