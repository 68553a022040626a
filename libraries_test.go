package gatehouse_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"golang.org/x/mod/modfile"
)

// owners says which packages may import which library in code that ships. A
// folder covers those below it. Each library has few owners so that it can be
// replaced, and so that what must not depend on it does not.
var owners = map[string][]string{
	// JSON that is decided on is read strictly, everywhere.
	"github.com/go-json-experiment/json": {"internal", "tool", "cmd/gatehouse"},
	// Names are compared in one place.
	"go.mau.fi/util":                   {"internal/match"},
	"golang.org/x/text":                {"internal/match", "internal/content"},
	"github.com/bmatcuk/doublestar/v4": {"internal/match", "sandbox"},
	// The egress proxy is public and stands alone.
	"golang.org/x/net": {"internal/match", "sandbox", "internal/mcp"},
	// Parsers, each behind one door.
	"mvdan.cc/sh/v3":                      {"internal/shell"},
	"github.com/pelletier/go-toml/v2":     {"internal/policy", "internal/shell/knowledge", "internal/risk", "internal/manifest", "internal/dispatch/provider", "internal/connect/rules"},
	"go.yaml.in/yaml/v3":                  {"internal/content", "internal/element", "internal/aql", "internal/api", "tool/declare", "internal/manifest"},
	"github.com/google/jsonschema-go":     {"internal/policy", "internal/manifest", "internal/api", "internal/mcp", "tool"},
	"github.com/cedar-policy/cedar-go":    {"internal/policy"},
	"golang.org/x/tools":                  {"cmd/gatehouse-vet", "tool/vet"},
	"github.com/spf13/cobra":              {"cmd/gatehouse"},
	"github.com/spf13/pflag":              {"cmd/gatehouse"}, // cobra's flags, to print them
	"charm.land/bubbles/v2":               {"cmd/gatehouse"},
	"charm.land/bubbletea/v2":             {"cmd/gatehouse"},
	"charm.land/huh/v2":                   {"cmd/gatehouse"},
	"charm.land/lipgloss/v2":              {"cmd/gatehouse"},
	"golang.org/x/term":                   {"cmd/gatehouse", "sandbox"},
	"github.com/creack/pty":               {"internal/dispatch", "internal/inrun", "sandbox"},
	"modernc.org/sqlite":                  {"internal/store"},
	"github.com/jackc/pgx/v5":             {"internal/store"},
	"golang.org/x/mod":                    {"internal/audit"},
	"filippo.io/age":                      {"internal/keyring", "internal/approval"},
	"aead.dev/minisign":                   {"internal/manifest"},
	"github.com/gen2brain/beeep":          {"internal/approval"},
	"github.com/fsnotify/fsnotify":        {"internal/daemon"},
	"github.com/landlock-lsm/go-landlock": {"sandbox", "internal/launch"},
	"github.com/tetratelabs/wazero":       {"sandbox"},
	"github.com/modelcontextprotocol/go-sdk": {
		"internal/mcp", "internal/aql", "tool",
	},
	"github.com/alexedwards/scs/v2":       {"internal/console"},
	"github.com/go-webauthn/webauthn":     {"internal/console", "internal/approval"},
	"github.com/coreos/go-oidc/v3":        {"internal/console", "internal/daemon"},
	"golang.org/x/oauth2":                 {"internal/console"},
	"golang.org/x/time":                   {"internal/api", "internal/mcp", "internal/console", "internal/approval"},
	"github.com/prometheus/client_golang": {"internal/api", "internal/daemon"},
	// The tracing API may be called where calls come in; the SDK, which links
	// ten times as much, is set up once.
	"go.opentelemetry.io/otel":                                        {"internal/gate", "internal/api", "internal/mcp", "internal/daemon"},
	"go.opentelemetry.io/otel/sdk":                                    {"internal/daemon"},
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp": {"internal/daemon"},
	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp":   {"internal/daemon", "internal/api"},
	// Unified diffs of what a confined run changed, and of what is put back.
	"github.com/rogpeppe/go-internal": {"sandbox/changes", "internal/restore"},
	// The system itself.
	"golang.org/x/sys":  {"internal/autonomy", "internal/store", "internal/launch", "internal/supervise", "internal/beside", "internal/api", "internal/hook", "internal/observe", "internal/daemon", "internal/dispatch", "internal/keyring", "internal/session", "sandbox"},
	"golang.org/x/sync": {"internal/daemon", "internal/dispatch", "internal/mcp"},
}

// testLibraries may be imported by tests and by what helps them, and by
// nothing else. Tests may import every library above as well, to compare with.
var testLibraries = []string{
	"github.com/chromedp/chromedp",
	"github.com/chromedp/cdproto",
	"github.com/google/go-cmp",
	"go.uber.org/goleak",
	"pgregory.net/rapid",
}

// assertionLibraries say less than a comparison and a sentence.
var assertionLibraries = []string{
	"github.com/stretchr/testify", "github.com/onsi/gomega", "gotest.tools", "github.com/matryer/is", "github.com/frankban/quicktest",
}

// TestLibrariesHaveOwners holds the imports of other modules against owners.
func TestLibrariesHaveOwners(t *testing.T) {
	t.Parallel()
	librariesHaveOwners(parsedTree(t), t.Errorf)
}

func librariesHaveOwners(files []*file, report reporter) {
	for _, f := range files {
		for p, spec := range f.imports() {
			if _, ours := local(p); ours || !strings.Contains(strings.Split(p, "/")[0], ".") {
				continue // this module, or the standard library
			}
			if inModules(p, assertionLibraries) {
				report("%s: %s is an assertion library; compare with cmp.Diff and say what differs", f.at(spec), p)
			}
			if f.test || forTests(f.dir) {
				continue
			}
			library, allowed := owner(p)
			switch {
			case inModules(p, testLibraries):
				report("%s: %s is for tests", f.at(spec), p)
			case library == "":
				report("%s: nobody owns %s: add it to owners in libraries_test.go with the packages that may import it", f.at(spec), p)
			case !slices.ContainsFunc(allowed, func(o string) bool { return under(f.dir, o) }):
				report("%s: %s must not import %s, which is for %s", f.at(spec), f.dir, p, strings.Join(allowed, ", "))
			}
		}
	}
}

// TestEveryRequirementHasAnOwner finds libraries in go.mod that the lists here
// do not name, and names that go.mod does not have.
func TestEveryRequirementHasAnOwner(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	mod, err := modfile.Parse("go.mod", data, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(mod.Replace) > 0 {
		t.Error("go.mod has a replace line: whoever installs the module by its path would not get it")
	}
	required := map[string]bool{}
	for _, r := range mod.Require {
		required[r.Mod.Path] = true
		if _, owned := owners[r.Mod.Path]; !r.Indirect && !owned && !slices.Contains(testLibraries, r.Mod.Path) {
			t.Errorf("go.mod requires %s, which has no owner in libraries_test.go", r.Mod.Path)
		}
	}
	for library := range owners {
		if !required[library] {
			t.Errorf("owners has %s, which go.mod does not require", library)
		}
	}
}

// owner finds the library that an import path belongs to: the longest name
// that fits, because one module may lie inside another.
func owner(importPath string) (library string, allowed []string) {
	for name, packages := range owners {
		if under(importPath, name) && len(name) > len(library) {
			library, allowed = name, packages
		}
	}
	return library, allowed
}

func inModules(importPath string, modules []string) bool {
	return slices.ContainsFunc(modules, func(m string) bool { return under(importPath, m) })
}
