package content

import (
	"strings"
)

// redactRules find values by their surroundings. Each confirm returns the span of the value alone.
func redactRules() []rule {
	in := func(name string, keys []string, c confirm) rule {
		return credential(name, "", keys, notInMarker(c)).cheap()
	}
	names := []string{"password", "passwd", "passphrase", "pwd", "secret", "token", "api_key", "apikey", "api-key", "api key", "access_key", "access-key",
		"accesskey", "private_key", "private-key", "privatekey", "auth_key", "signing_key", "encryption_key", "credential", "session_id", "sessionid", "otp"}
	return []rule{
		in("assign", names, assignedValue),
		in("flag", []string{"--pass", "--token", "--secret", "--api-key", "--apikey", "--api_key", "--access-key", "--auth", "--client-secret", "--private-key", "--credential", "--pin"}, flagValue),
		in("header", []string{"authorization:", "cookie:", "api-key:", "auth-token:", "access-token:", "csrf-token:", "authorization\":", "cookie\":", "authorization':", "cookie':"}, headerValue),
		in("bearer", []string{"bearer "}, bearerValue),
		in("url", []string{"://"}, urlValue),
		in("user", []string{" -u ", " -u", "--user ", "--user=", "--proxy-user "}, userValue),
		in("short-flag", []string{"sshpass -p", "mysql", "mariadb", "redis-cli"}, shortFlagValue),
	}
}

// notInMarker leaves what earlier redaction left alone.
func notInMarker(c confirm) confirm {
	return func(t *target, s, e int) (int, int, Severity) {
		text := t.text
		if markerAround(text, s, e) {
			return 0, 0, 0
		}
		from, to, sev := c(t, s, e)
		if sev == 0 || from >= to || isMarker(text[from:to]) || reference(text[from:to]) {
			return 0, 0, 0
		}
		return from, to, sev
	}
}

// reference reports whether a value only names a variable: $NAME or ${NAME}, in capitals.
func reference(v string) bool {
	v, ok := strings.CutPrefix(v, "$")
	if !ok {
		return false
	}
	if in, ok := strings.CutPrefix(v, "{"); ok {
		if v, ok = strings.CutSuffix(in, "}"); !ok {
			return false
		}
	}
	for i := 0; i < len(v); i++ {
		if c := v[i]; !(c >= 'A' && c <= 'Z' || c == '_' || c >= '0' && c <= '9' && i > 0) {
			return false
		}
	}
	return v != ""
}

// valueAt returns the value that starts at i: quoted to its closing quote, bare to white space or a
// quote. Characters that end a word elsewhere may be part of a password, so they do not end it here.
func valueAt(text string, i int, stops string) (start, end int) {
	for i < len(text) && text[i] == '\\' && i+1 < len(text) && isQuote(text[i+1]) {
		return escapedQuote(text, i)
	}
	if i < len(text) && isQuote(text[i]) {
		q := text[i]
		for k := i + 1; k < len(text); k++ {
			switch text[k] {
			case '\\':
				k++
			case q:
				return i + 1, k
			}
		}
		return i + 1, len(text) // unclosed: all of the rest
	}
	end = i
	for end < len(text) && text[end] > ' ' && !isQuote(text[end]) && strings.IndexByte(stops, text[end]) < 0 {
		end++
	}
	return i, end
}

// escapedQuote reads a value between \" and \", as in JSON within JSON.
func escapedQuote(text string, i int) (start, end int) {
	open := text[i : i+2]
	start = i + 2
	if k := strings.Index(text[start:], open); k >= 0 {
		return start, start + k
	}
	return start, len(text)
}

func isQuote(c byte) bool { return c == '"' || c == '\'' || c == '`' }

func skipBlanks(text string, i, most int) int {
	for n := 0; i < len(text) && n < most && (text[i] == ' ' || text[i] == '\t'); n++ {
		i++
	}
	return i
}

// assignedValue reads name = value, "name": value, name => value.
func assignedValue(t *target, _, e int) (int, int, Severity) {
	text := t.text
	i, plural := nameTail(text, e)
	if i < 0 {
		return 0, 0, 0
	}
	if i < len(text) && text[i] == '\\' {
		i++
	}
	if i < len(text) && isQuote(text[i]) {
		i++
	}
	i = skipBlanks(text, i, 4)
	sep := i
	for i < len(text) && i-sep < 3 && strings.IndexByte(":=>", text[i]) >= 0 {
		i++
	}
	if i == sep || text[sep:i] == ">" {
		return 0, 0, 0
	}
	i = skipBlanks(text, i, 8)
	stops := ""
	if e >= 2 && queryName(text, e) {
		stops = "&#"
	}
	quoted := i < len(text) && (isQuote(text[i]) || text[i] == '\\')
	from, to := valueAt(text, i, stops)
	value := text[from:to]
	if !quoted && (typeName(value) || plural && allNumber(value) || strings.HasPrefix(text[sep:], "==")) {
		return 0, 0, 0
	}
	return from, to, High
}

// nameTail passes the rest of a name behind a keyword: "password_hash", "tokens", "secretKey", but
// not "tokenizer". It returns -1 if the keyword is part of another word.
func nameTail(text string, i int) (end int, plural bool) {
	if i < len(text) && text[i]|0x20 == 's' && (i+1 == len(text) || !alnum(text[i+1])) {
		i++
		plural = true
	}
	if i < len(text) && text[i] >= 'a' && text[i] <= 'z' {
		return -1, false
	}
	for n := 0; i < len(text) && n < 32 && (alnum(text[i]) || text[i] == '_' || text[i] == '-'); n++ {
		i++
	}
	return i, plural
}

// queryName reports whether the name that ends at e stands in a URL's query.
func queryName(text string, e int) bool {
	for i := e - 1; i >= max(0, e-40); i-- {
		switch c := text[i]; {
		case c == '?' || c == '&':
			return true
		case !alnum(c) && c != '_' && c != '-':
			return false
		}
	}
	return false
}

// typeName reports whether a bare value is a type or a constant, as in code.
func typeName(v string) bool {
	switch strings.ToLower(strings.TrimRight(v, ",;)}]|")) {
	case "", "string", "str", "int", "number", "bool", "boolean", "any", "none", "null", "nil", "undefined", "true", "false", "required",
		"optional", "object", "text", "bytes", "[]byte", "void", "unknown", "never", "{", "[", "(":
		return true
	}
	return false
}

func allNumber(v string) bool {
	v = strings.TrimRight(v, ",;)}]")
	for i := 0; i < len(v); i++ {
		if v[i] < '0' || v[i] > '9' {
			return false
		}
	}
	return v != ""
}

// flagValue reads --password value and --password=value.
func flagValue(t *target, _, e int) (int, int, Severity) {
	text := t.text
	i := e
	for i < len(text) && i-e < 24 && (alnum(text[i]) || text[i] == '-' || text[i] == '_') {
		i++
	}
	if i < len(text) && text[i] == '=' {
		i++
	} else if next := skipBlanks(text, i, 4); next > i {
		i = next
	} else {
		return 0, 0, 0
	}
	from, to := valueAt(text, i, "")
	if strings.HasPrefix(text[from:to], "-") && !strings.HasPrefix(text[from:to], "---") {
		return 0, 0, 0 // the next flag: this one takes no value
	}
	return from, to, High
}

// headerValue takes the rest of the line, without the name of an authentication scheme.
func headerValue(t *target, _, e int) (int, int, Severity) {
	text := t.text
	i := skipBlanks(text, e, 8)
	if i < len(text) && isQuote(text[i]) {
		from, to := valueAt(text, i, "")
		from = skipScheme(text, from, to)
		return from, to, High
	}
	end := i
	for end < len(text) && text[end] != '\n' && text[end] != '\r' && !isQuote(text[end]) {
		end++
	}
	return skipScheme(text, i, end), end, High
}

func skipScheme(text string, from, to int) int {
	for _, scheme := range []string{"bearer ", "basic ", "token ", "digest ", "negotiate "} {
		if to-from > len(scheme) && strings.EqualFold(text[from:from+len(scheme)], scheme) {
			return skipBlanks(text, from+len(scheme), 8)
		}
	}
	return from
}

func bearerValue(t *target, s, e int) (int, int, Severity) {
	text := t.text
	if s > 0 && alnum(text[s-1]) {
		return 0, 0, 0
	}
	i := skipBlanks(text, e, 8)
	from, to := valueAt(text, i, ",;)")
	if to-from < 8 {
		return 0, 0, 0 // "bearer of", "bearer token"
	}
	if to-from < 20 && !random(text[from:to]) {
		return 0, 0, 0
	}
	return from, to, High
}

// urlValue takes the password of a URL, or a user name long enough to be a token.
func urlValue(t *target, s, _ int) (int, int, Severity) {
	text := t.text
	if password, _, _ := splitAuthority(text, s); password != "" {
		from := s + 3 + strings.IndexByte(text[s+3:], ':') + 1
		return from, from + len(password), High
	}
	rest := text[s+3 : min(len(text), s+3+maxAuthority)]
	stop := strings.IndexAny(rest, " \t\r\n/'\"<>`\\?#@")
	if stop >= 16 && rest[stop] == '@' {
		return s + 3, s + 3 + stop, High
	}
	return 0, 0, 0
}

// userValue reads curl -u name:password.
func userValue(t *target, _, e int) (int, int, Severity) {
	text := t.text
	from, to := valueAt(text, skipBlanks(text, e, 2), "")
	if loc := markerShape.FindStringIndex(text[from:to]); loc != nil && loc[0] == 0 {
		from += loc[1] // the colons of a marker separate nothing
	}
	colon := strings.IndexByte(text[from:to], ':')
	if colon < 0 || colon+1 == to-from || strings.HasPrefix(text[from+colon:], "://") {
		return 0, 0, 0
	}
	return from + colon + 1, to, High
}

// shortFlagValue reads sshpass -p VALUE, mysql -pVALUE, redis-cli -a VALUE.
func shortFlagValue(t *target, s, e int) (int, int, Severity) {
	text := t.text
	if strings.HasSuffix(text[s:e], "-p") {
		from, to := valueAt(text, skipBlanks(text, e, 2), "")
		return from, to, High
	}
	flag := " -p"
	if strings.EqualFold(text[s:e], "redis-cli") {
		flag = " -a "
	}
	line := text[e:min(len(text), e+200)]
	if i := strings.IndexByte(line, '\n'); i >= 0 {
		line = line[:i]
	}
	at := strings.Index(line, flag)
	if at < 0 {
		return 0, 0, 0
	}
	from, to := valueAt(text, e+at+len(flag), "")
	return from, to, High
}
