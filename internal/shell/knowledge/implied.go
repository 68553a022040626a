package knowledge

import "strings"

// rawImplied is capabilities.toml.
type rawImplied struct {
	Secrets rawNames `toml:"secrets"`
	User    rawNames `toml:"user"`
}

type rawNames struct {
	Tools  []string `toml:"tools"`
	Fields []string `toml:"fields"`
}

// impliedTable says which names imply a capability.
type impliedTable struct{ secrets, user names }

type names struct{ tools, fields patterns }

func (r *rawImplied) compile() impliedTable {
	compile := func(n rawNames) names {
		return names{tools: compilePatterns(lower(n.Tools)), fields: compilePatterns(lower(n.Fields))}
	}
	return impliedTable{secrets: compile(r.Secrets), user: compile(r.User)}
}

func lower(list []string) []string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = strings.ToLower(s)
	}
	return out
}

// ToolImplies says what the name of an unknown tool implies.
func (b *Base) ToolImplies(tool string) (secrets, user bool) {
	tool = strings.ToLower(tool)
	return b.tables.implied.secrets.tools.match(tool), b.tables.implied.user.tools.match(tool)
}

// FieldImplies says what the name of an argument of an unknown tool implies.
func (b *Base) FieldImplies(field string) (secrets, user bool) {
	field = strings.ToLower(field)
	return b.tables.implied.secrets.fields.match(field), b.tables.implied.user.fields.match(field)
}
