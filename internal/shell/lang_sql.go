package shell

import "strings"

// sql reads SQL statements: the first word of each says what it does. The
// program's own table says that a server is contacted.
func (a *analyzer) sql(w *word) {
	if !w.known {
		a.unknown(w.span, "runs SQL that is not known")
		a.sqlText(w.text, w)
		return
	}
	w.each(func(text string) { a.sqlText(text, w) })
}

func (a *analyzer) sqlText(text string, w *word) {
	for _, stmt := range sqlStatements(text) {
		a.sqlStatement(stmt, w)
	}
}

// sqlVerbs maps the first word of a statement to what it does.
var sqlVerbs = map[string]Class{
	"SELECT": ClassSafe, "SHOW": ClassSafe, "DESCRIBE": ClassSafe, "DESC": ClassSafe, "WITH": ClassSafe, "VALUES": ClassSafe,
	"EXPLAIN": ClassSafe, "USE": ClassSafe, "BEGIN": ClassSafe, "COMMIT": ClassSafe, "ROLLBACK": ClassSafe, "START": ClassSafe,
	"END": ClassSafe, "TABLE": ClassSafe, "PRAGMA": ClassSafe, "EXISTS": ClassSafe, "CHECK": ClassSafe, "SET": ClassSafe,
	"INSERT": ClassMutating, "UPDATE": ClassMutating, "CREATE": ClassMutating, "ALTER": ClassMutating, "MERGE": ClassMutating,
	"REPLACE": ClassMutating, "UPSERT": ClassMutating, "COMMENT": ClassMutating, "ANALYZE": ClassMutating, "VACUUM": ClassMutating,
	"REINDEX": ClassMutating, "REFRESH": ClassMutating, "OPTIMIZE": ClassMutating, "RENAME": ClassMutating, "ATTACH": ClassMutating,
	"DETACH": ClassMutating,
	"DROP":   ClassDestructive, "TRUNCATE": ClassDestructive, "DELETE": ClassDestructive, "PURGE": ClassDestructive,
	"KILL": ClassDestructive, "FLUSHALL": ClassDestructive, "FLUSHDB": ClassDestructive,
}

func (a *analyzer) sqlStatement(stmt string, w *word) {
	trimmed := strings.TrimSpace(stmt)
	if trimmed == "" {
		return
	}
	if trimmed[0] == '\\' || trimmed[0] == '.' {
		a.sqlMeta(trimmed, w)
		return
	}
	words := strings.FieldsFunc(strings.ToUpper(trimmed), func(r rune) bool {
		return !(r >= 'A' && r <= 'Z' || r == '_' || r >= '0' && r <= '9')
	})
	if len(words) == 0 {
		return
	}
	class, ok := sqlVerbs[words[0]]
	if !ok {
		class = ClassUnknown
	}
	has := map[string]bool{}
	for _, x := range words {
		has[x] = true
	}
	switch words[0] {
	case "WITH", "EXPLAIN":
		for _, verb := range []string{"DELETE", "TRUNCATE", "DROP"} {
			if has[verb] {
				class = ClassDestructive
			}
		}
		if class == ClassSafe && (has["INSERT"] || has["UPDATE"]) {
			class = ClassMutating
		}
	case "UPDATE":
		if !has["WHERE"] {
			class = ClassDestructive
		}
	case "ALTER":
		if has["DROP"] {
			class = ClassDestructive
		}
	}
	for _, x := range []string{"PROGRAM", "LOAD_EXTENSION", "WRITEFILE", "XP_CMDSHELL", "LO_EXPORT", "OUTFILE", "DUMPFILE", "PG_READ_FILE"} {
		if has[x] {
			class = max(class, ClassUnknown)
		}
	}
	e := Effect{Kind: KindWrite, Class: class, Database: true, Span: w.span, Why: "changes a database: " + strings.ToLower(words[0])}
	switch class {
	case ClassMutating:
		// What was there before is gone, unless somebody kept it.
		e.Irreversible = has["UPDATE"] || has["MERGE"] || has["REPLACE"] || has["UPSERT"]
	case ClassSafe:
		e.Kind, e.Why = KindRead, "reads a database"
	case ClassDestructive:
		e.Kind, e.Irreversible, e.Why = KindDelete, true, "destroys data: "+strings.ToLower(words[0])
	case ClassUnknown:
		e.Kind, e.Why = KindUnknown, "runs SQL that is not understood"
	}
	a.add(e)
}

// sqlMeta is a command of the client itself: \d, .tables.
func (a *analyzer) sqlMeta(cmd string, w *word) {
	name := strings.TrimRight(strings.Fields(cmd)[0], "+S")
	switch name {
	case `\d`, `\dt`, `\di`, `\dv`, `\df`, `\dn`, `\du`, `\dp`, `\l`, `\x`, `\timing`, `\conninfo`, `\q`, `\echo`, `\pset`, `\z`, `\dx`, `\ds`, `\dm`, `\sf`, `\sv`,
		".tables", ".schema", ".databases", ".headers", ".mode", ".indexes", ".indices", ".quit", ".exit", ".help", ".show", ".width",
		".timer", ".dump", ".fullschema", ".header", ".nullvalue", ".separator", ".stats", ".eqp", ".print", ".dbinfo", ".version":
		a.add(Effect{Kind: KindRead, Class: ClassSafe, Span: w.span, Why: "reads a database"})
	default:
		a.unknown(w.span, "the client's command "+name+" can read, write or run things")
	}
}

// sqlStatements splits at semicolons outside quotes, drops comments, and
// keeps client commands, which end with their line.
func sqlStatements(text string) []string {
	var out []string
	var cur strings.Builder
	flush := func() {
		out = append(out, cur.String())
		cur.Reset()
	}
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case c == '\'' || c == '"' || c == '`':
			end := strings.IndexByte(text[i+1:], c)
			if end < 0 {
				end = len(text) - i - 2
			}
			cur.WriteString(" ")
			i += end + 1
		case strings.HasPrefix(text[i:], "--"):
			if j := strings.IndexByte(text[i:], '\n'); j >= 0 {
				i += j
			} else {
				i = len(text)
			}
		case strings.HasPrefix(text[i:], "/*"):
			body, _, closed := strings.Cut(text[i+2:], "*/")
			if strings.HasPrefix(body, "!") {
				cur.WriteString(body[1:]) // MySQL runs these
			}
			i += 2 + len(body)
			if closed {
				i++
			}
		case c == ';':
			flush()
		case c == '\n' && metaLine(cur.String()):
			flush()
		case cur.Len() == 0 && (c == ' ' || c == '\t' || c == '\n'):
		default:
			cur.WriteByte(c)
		}
	}
	flush()
	return out
}

func metaLine(s string) bool {
	return s != "" && (s[0] == '\\' || s[0] == '.')
}
