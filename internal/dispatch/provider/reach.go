package provider

import (
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
)

// Hosts are where a CLI's models are, as a sandbox is told: those that its
// environment or its settings name, or else those it is known to have.
func Hosts(cli string, env []string, files map[string]string) []string {
	var hosts []string
	add := func(address string) {
		u, err := url.Parse(address)
		if err != nil || u.Host == "" {
			return
		}
		host := u.Host
		if u.Port() == "" {
			host += map[string]string{"http": ":80", "https": ":443"}[u.Scheme]
		}
		hosts = append(hosts, host)
	}
	for _, e := range env {
		if name, value, _ := strings.Cut(e, "="); strings.HasSuffix(name, "_BASE_URL") {
			add(value)
		}
	}
	for name, text := range files {
		var settings map[string]any
		if filepath.Ext(name) == ".toml" && toml.Unmarshal([]byte(text), &settings) == nil {
			addresses(settings, add)
		}
	}
	if len(hosts) == 0 {
		return slices.Clone(adapters[cli].hosts)
	}
	slices.Sort(hosts)
	return slices.Compact(hosts)
}

// addresses finds the addresses of models in settings.
func addresses(at any, add func(string)) {
	switch at := at.(type) {
	case map[string]any:
		for key, value := range at {
			if text, ok := value.(string); ok && (key == "base_url" || key == "api_base") {
				add(text)
			} else {
				addresses(value, add)
			}
		}
	case []any:
		for _, value := range at {
			addresses(value, add)
		}
	}
}

// Variables are what a CLI reads of the environment of whoever runs it.
func Variables(cli string) []string { return adapters[cli].env }

// Tree is what a program was installed with, to be read: the tree of packages
// around it, or the file itself, and the link by which it was found.
func Tree(program string) []string {
	real, err := filepath.EvalSymlinks(program)
	if err != nil {
		return []string{program}
	}
	if i := strings.LastIndex(real, "/node_modules/"); i >= 0 {
		real = real[:i] + "/node_modules"
	}
	if real == program || strings.HasPrefix(program, real+"/") {
		return []string{real}
	}
	return []string{real, program}
}
