package facts

import (
	"path"
	"strings"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/shell/knowledge"
)

// tagged adds what a path implies besides being read or written, by the one
// table that commands are judged by as well: credentials, personal data, and
// code that runs later.
func (x *extractor) tagged(c call.Capability, real, scope string, e call.Evidence) {
	t := knowledge.Builtin().PathTags(real)
	has := func(tag knowledge.Tag) bool { return t.Name == tag || t.Place == tag }
	if has(knowledge.TagSecret) {
		x.need(call.SecretsAccess, scope, e)
	}
	if has(knowledge.TagUser) || has(knowledge.TagHistory) {
		x.need(call.DataUser, scope, e)
	}
	if c == call.FSWrite && (has(knowledge.TagStartup) || strings.Contains(real, "/.git/")) {
		e.Text += ": what it says runs later"
		x.need(call.ProcExec, "", e)
	}
}

// hinted adds what the name of an unknown tool and those of its arguments
// imply.
func (x *extractor) hinted(strs []String) {
	add := func(secrets, user bool, name, where string) {
		e := call.Evidence{Where: where, Text: name}
		if secrets && !x.needs(call.SecretsAccess, name) {
			x.need(call.SecretsAccess, name, e)
		}
		if user && !x.needs(call.DataUser, name) {
			x.need(call.DataUser, name, e)
		}
	}
	kb := knowledge.Builtin()
	secrets, user := kb.ToolImplies(x.call.Operation)
	add(secrets, user, x.call.Operation, "operation")
	for _, s := range strs {
		if s.Key {
			secrets, user := kb.FieldImplies(s.Text)
			add(secrets, user, s.Text, s.Where)
		}
	}
}

// picksSecrets says whether a pattern picks out files that hold credentials:
// it matches the name of one, and not just any name.
func picksSecrets(glob string) bool {
	name := path.Base(glob)
	if ok, err := path.Match(name, "main.go"); ok || err != nil {
		return false
	}
	for _, n := range []string{".env", ".env.local", "id_rsa", "id_ed25519", "credentials", "server.pem", "server.key", ".netrc", ".npmrc", ".pgpass"} {
		if ok, _ := path.Match(name, n); ok {
			return true
		}
	}
	return knowledge.Builtin().PathTags(name).Name == knowledge.TagSecret
}
