package confine_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/seed-3ebc6b8a/gatehouse/internal/confine"
	"github.com/seed-3ebc6b8a/gatehouse/internal/policy"
	"github.com/seed-3ebc6b8a/gatehouse/sandbox"
	"github.com/seed-3ebc6b8a/gatehouse/tool/declare"
)

var at = confine.Place{Dir: "/work", Home: "/home/me", Program: "make", Environ: []string{"APP_A=1", "APP_B=2", "OTHER=3"}}

func TestAccessBecomesASpec(t *testing.T) {
	t.Parallel()
	none, all := confine.Only(), confine.Part{Said: true, All: true}
	for name, c := range map[string]struct {
		access confine.Access
		want   sandbox.Spec
	}{
		"nothing said": {confine.Access{}, sandbox.Spec{}},
		"everything none": {
			confine.Access{Read: none, Write: none, Hosts: none, Env: none, Exec: none},
			sandbox.Spec{Read: []string{"/usr"}, Env: sandbox.Env{Pass: []string{}}, NoExec: true},
		},
		"files": {
			confine.Access{Read: confine.Only("./src/**", "~/notes"), Write: confine.Only("/out/**"), Kept: []string{"./out/keep/**", "~/x"}},
			sandbox.Spec{Read: []string{"./src/**", "/home/me/notes"}, Write: []string{"/out/**"}, Protected: []string{"/work/out/keep", "/home/me/x"}},
		},
		"hosts": {
			confine.Access{Hosts: confine.Only("a.test", "*.b.test:443"), Denied: []string{"x.b.test"}},
			sandbox.Spec{Net: sandbox.Net{Mode: sandbox.NetHosts, Allow: []string{"a.test", "*.b.test:443"}, Deny: []string{"x.b.test"}}},
		},
		"any host": {confine.Access{Hosts: confine.Only("*:*")}, sandbox.Spec{Net: sandbox.Net{Mode: sandbox.NetPublic}}},
		"all":      {confine.Access{Hosts: all, Exec: all, Env: all}, sandbox.Spec{Net: sandbox.Net{Mode: sandbox.NetPublic}, Env: sandbox.Env{Inherit: true}}},
		"programs": {confine.Access{Exec: confine.Only("ls", "make")}, sandbox.Spec{NoExec: true}},
		"asked":    {confine.Access{Ask: true}, sandbox.Spec{Net: sandbox.Net{Mode: sandbox.NetHosts}}},
		"variables": {
			confine.Access{Env: confine.Only("APP_*", "PATH")}, sandbox.Spec{Env: sandbox.Env{Pass: []string{"APP_A", "APP_B", "PATH"}}},
		},
	} {
		got, err := c.access.Spec(at)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff(c.want, got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if (got.Env.Pass == nil) != (c.want.Env.Pass == nil) {
			t.Errorf("%s: no variables and the default ones are not the same", name)
		}
	}
}

// What cannot be held exactly is refused, never widened.
func TestWhatCannotBeHeldIsRefused(t *testing.T) {
	t.Parallel()
	all := confine.Part{Said: true, All: true}
	for name, a := range map[string]confine.Access{
		"all files":       {Read: all},
		"all writes":      {Write: all},
		"star with ports": {Hosts: confine.Only("*")},
		"port alone":      {Hosts: confine.Only(":443")},
		"not a host":      {Hosts: confine.Only("http://a.test/")},
		"programs":        {Exec: confine.Only("git")}, // and another is started
		"kept glob":       {Kept: []string{"./*.txt"}},
		"another's home":  {Read: confine.Only("~root/x")},
	} {
		if s, err := a.Spec(at); err == nil {
			t.Errorf("%s: became %+v", name, s)
		}
	}
	if s, err := (&confine.Access{Read: confine.Only("~/x")}).Spec(confine.Place{}); err == nil {
		t.Errorf("a home that is not there became %+v", s)
	}
}

func explain(t *testing.T, text string) *policy.Explanation {
	t.Helper()
	f, err := policy.Parse("test.toml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	s, err := policy.Compile([]policy.Layer{{Scope: policy.ScopeUser, File: f, Trusted: true}}, policy.Options{Home: "/home/me", Launcher: true})
	if err != nil {
		t.Fatal(err)
	}
	e := s.Explain()
	return &e
}

func TestPolicyBecomesAccess(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text string
		want confine.Access
	}{
		"supervised": {`version = 1`, confine.Access{Write: confine.Only(), Hosts: confine.Only(), Ask: true}},
		"autonomous": {"version = 1\nprofile = \"autonomous\"\n", confine.Access{Write: confine.Only("./**"), Hosts: confine.Only()}},
		"one's own": {`version = 1
profile = "mine"
[profiles.mine]
base = "autonomous"
[profiles.mine.capabilities]
"fs.write:./gen/**" = "DENY"
"net.egress:*.example.com:443" = "AUTO_APPROVE"
"net.egress:bad.example.com:*" = "DENY"
"proc.exec" = "DENY"
[[rules]]
name = "ci"
path = "./.github/**"
level = "CONFIRM_SINGLE_USE"
reason = "ci"
`, confine.Access{
			Write: confine.Only("./**"), Kept: []string{"./gen/**", "./.github/**"}, Hosts: confine.Only("*.example.com:443"),
			Denied: []string{"bad.example.com:*"}, Exec: confine.Only(),
		}},
	} {
		got, err := confine.FromPolicy(explain(t, c.text))
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff(c.want, got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestPolicyThatCannotBeHeldIsRefused(t *testing.T) {
	t.Parallel()
	head := "version = 1\nprofile = \"mine\"\n[profiles.mine]\nbase = \"supervised\"\n[profiles.mine.capabilities]\n"
	for name, text := range map[string]string{
		"write without delete": head + `"fs.write:./src/**" = "AUTO_APPROVE"`,
		"a hole in reading":    head + `"fs.read:./secret/**" = "DENY"`,
		"a name at any depth":  head + "\"fs.read\" = \"AUTO_APPROVE\"\n[[rules]]\nname = \"x\"\npath = \"**/key\"\nlevel = \"DENY\"\nreason = \"x\"\n",
	} {
		if got, err := confine.FromPolicy(explain(t, text)); err == nil {
			t.Errorf("%s: became %+v", name, got)
		}
	}
}

func TestToolBecomesAccess(t *testing.T) {
	t.Parallel()
	set, err := declare.Parse([]byte(`gatehouse: 1
tools:
  - name: build
    policy:
      risk: medium
      filesystem: {read: ["./src/**"], write: ["./out/**"]}
      network: [proxy.example.com:443]
      environment: [PATH, "GO*"]
      exec: all
  - name: pure
    policy:
      risk: low
      filesystem: {read: none, write: none}
      network: none
      exec: none
`))
	if err != nil {
		t.Fatal(err)
	}
	want := []confine.Access{
		{
			Read: confine.Only("./src/**"), Write: confine.Only("./out/**"), Hosts: confine.Only("proxy.example.com:443"),
			Env: confine.Only("GO*", "PATH"), Exec: confine.Part{Said: true, All: true},
		},
		{Read: confine.Only(), Write: confine.Only(), Hosts: confine.Only(), Exec: confine.Only()},
	}
	for i, w := range want {
		if diff := cmp.Diff(w, confine.FromTool(set.Tools[i].Policy), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", set.Tools[i].Name, diff)
		}
	}
	if diff := cmp.Diff(confine.Access{}, confine.FromTool(nil)); diff != "" {
		t.Error(diff)
	}
}
