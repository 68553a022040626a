package content

import (
	"math"
	"regexp"
	"strings"
	"sync"
)

// A token is a credential whose issuer gave it a recognisable shape.
type tokenShape struct {
	name string
	what string
	key  string // what it starts with
	expr string // the whole of it
	sev  Severity
}

// tokenShapes: high where the shape alone grants access, lower where such values are also made to
// be public or to be tried with.
var tokenShapes = []tokenShape{
	{"aws-key", "AWS access key", "AKIA", `AKIA[A-Z2-7]{16}\b`, High},
	{"aws-key", "AWS temporary access key", "ASIA", `ASIA[A-Z2-7]{16}\b`, High},
	{"gcp-key", "Google API key", "AIza", `AIza[0-9A-Za-z_-]{35}`, Medium},
	{"gcp-oauth", "Google OAuth token", "ya29.", `ya29\.[0-9A-Za-z_-]{20,}`, High},
	{"gcp-secret", "Google OAuth client secret", "GOCSPX-", `GOCSPX-[0-9A-Za-z_-]{28}`, High},
	{"github", "GitHub token", "ghp_", `ghp_[0-9A-Za-z]{36,}`, High},
	{"github", "GitHub token", "gho_", `gho_[0-9A-Za-z]{36,}`, High},
	{"github", "GitHub token", "ghu_", `ghu_[0-9A-Za-z]{36,}`, High},
	{"github", "GitHub token", "ghs_", `ghs_[0-9A-Za-z]{36,}`, High},
	{"github", "GitHub token", "ghr_", `ghr_[0-9A-Za-z]{36,}`, High},
	{"github", "GitHub fine-grained token", "github_pat_", `github_pat_[0-9A-Za-z_]{50,}`, High},
	{"gitlab", "GitLab token", "glpat-", `glpat-[0-9A-Za-z_-]{20,}`, High},
	{"gitlab", "GitLab token", "gldt-", `gldt-[0-9A-Za-z_-]{20,}`, High},
	{"gitlab", "GitLab runner token", "glrt-", `glrt-[0-9A-Za-z_-]{20,}`, High},
	{"slack", "Slack token", "xox", `xox[abeoprs]-[0-9A-Za-z-]{20,}`, High},
	{"slack", "Slack app token", "xapp-", `xapp-\d-[0-9A-Z]{8,}-\d{8,}-[0-9a-f]{32,}`, High},
	{"slack-hook", "Slack webhook", "hooks.slack.com/", `hooks\.slack\.com/services/T[0-9A-Za-z]{6,}/B[0-9A-Za-z]{6,}/[0-9A-Za-z]{16,}`, Medium},
	{"discord-hook", "Discord webhook", "discord.com/api/webhooks/", `discord\.com/api/webhooks/\d{15,}/[0-9A-Za-z_-]{40,}`, Medium},
	{"npm", "npm token", "npm_", `npm_[0-9A-Za-z]{36}\b`, High},
	{"pypi", "PyPI token", "pypi-AgEIcHlwaS5vcmc", `pypi-AgEIcHlwaS5vcmc[0-9A-Za-z_-]{40,}`, High},
	{"stripe", "Stripe live key", "sk_live_", `sk_live_[0-9A-Za-z]{20,}`, High},
	{"stripe", "Stripe live restricted key", "rk_live_", `rk_live_[0-9A-Za-z]{20,}`, High},
	{"stripe-test", "Stripe test key", "sk_test_", `sk_test_[0-9A-Za-z]{20,}`, Low},
	{"openai", "OpenAI key", "sk-proj-", `sk-proj-[0-9A-Za-z_-]{40,}`, High},
	{"openai", "OpenAI key", "sk-svcacct-", `sk-svcacct-[0-9A-Za-z_-]{40,}`, High},
	{"openai", "OpenAI key", "T3BlbkFJ", "", High},
	{"anthropic", "Anthropic key", "sk-ant-", `sk-ant-[a-z]{3,8}\d\d-[0-9A-Za-z_-]{40,}`, High},
	{"openrouter", "OpenRouter key", "sk-or-v1-", `sk-or-v1-[0-9a-f]{40,}`, High},
	{"xai", "xAI key", "xai-", `xai-[0-9A-Za-z]{60,}`, High},
	{"groq", "Groq key", "gsk_", `gsk_[0-9A-Za-z]{40,}`, High},
	{"huggingface", "Hugging Face token", "hf_", `hf_[0-9A-Za-z]{30,}`, High},
	{"replicate", "Replicate token", "r8_", `r8_[0-9A-Za-z]{37}\b`, High},
	{"sendgrid", "SendGrid key", "SG.", `SG\.[0-9A-Za-z_-]{20,24}\.[0-9A-Za-z_-]{39,50}`, High},
	{"digitalocean", "DigitalOcean token", "dop_v1_", `dop_v1_[0-9a-f]{60,}`, High},
	{"shopify", "Shopify token", "shpat_", `shpat_[0-9a-fA-F]{32}`, High},
	{"databricks", "Databricks token", "dapi", `dapi[0-9a-f]{32}\b`, High},
	{"docker", "Docker Hub token", "dckr_pat_", `dckr_pat_[0-9A-Za-z_-]{20,}`, High},
	{"vault", "Vault token", "hvs.", `hvs\.[0-9A-Za-z_-]{24,}`, High},
	{"linear", "Linear key", "lin_api_", `lin_api_[0-9A-Za-z]{32,}`, High},
	{"notion", "Notion token", "ntn_", `ntn_[0-9A-Za-z]{40,}`, High},
	{"grafana", "Grafana token", "glsa_", `glsa_[0-9A-Za-z]{32}_[0-9a-f]{8}`, High},
	{"newrelic", "New Relic key", "NRAK-", `NRAK-[0-9A-Z]{27}`, High},
	{"postman", "Postman key", "PMAK-", `PMAK-[0-9a-f]{24}-[0-9a-f]{34}`, High},
	{"rubygems", "RubyGems key", "rubygems_", `rubygems_[0-9a-f]{48}`, High},
	{"supabase", "Supabase token", "sbp_", `sbp_[0-9a-f]{40}`, High},
	{"planetscale", "PlanetScale token", "pscale_tkn_", `pscale_tkn_[0-9A-Za-z_-]{32,}`, High},
	{"doppler", "Doppler token", "dp.pt.", `dp\.pt\.[0-9A-Za-z]{40,}`, High},
	{"age", "age private key", "AGE-SECRET-KEY-1", `AGE-SECRET-KEY-1[0-9A-Z]{50,}`, High},
	{"telegram", "Telegram bot token", ":AA", "", High},
	{"jwt", "JSON Web Token", "eyJ", `eyJ[0-9A-Za-z_-]{10,}\.eyJ[0-9A-Za-z_-]{10,}\.[0-9A-Za-z_-]{20,}`, Medium},
	{"azure-storage", "Azure storage key", "AccountKey=", `AccountKey=[0-9A-Za-z+/]{80,}={0,2}`, High},
	{"azure-sas", "Azure signature", "sig=", `sig=[0-9A-Za-z%+/]{40,}(?:=|%3[dD]){0,2}`, Medium},
}

func credentialRules() []rule {
	var rules []rule
	for _, t := range tokenShapes {
		r := credential(t.name, t.what, []string{t.key}, nil)
		switch t.key {
		case "T3BlbkFJ": // in the middle of older OpenAI keys
			r.match = placeholder(around(t.sev, 24, 40, `sk-[0-9A-Za-z]{20}T3BlbkFJ[0-9A-Za-z]{20}`))
		case ":AA":
			r.match = placeholder(around(t.sev, 12, 40, `\b\d{8,10}:AA[0-9A-Za-z_-]{32,34}\b`))
		default:
			r.match = placeholder(cased(t.key, word(fromKey(t.sev, 1024, t.expr))))
		}
		rules = append(rules, r)
	}
	return append(rules,
		credential("private-key", "private key", []string{"-----begin", "---- begin ssh2", "putty-user-key-file"}, privateKey).cheap(),
		credential("aws-secret", "AWS secret key", []string{"aws_secret", "secretaccesskey", "secret_access_key"},
			placeholder(fromKey(High, 160, `(?i:(?:aws_)?secret(?:_access)?_?(?:access)?_?key)["']?\s*[:=]\s*["']?[0-9A-Za-z/+]{40}\b`))),
		credential("url", "password in a URL", []string{"://"}, urlPassword).cheap(),
		credential("header", "credential in a request header", []string{"bearer ", "basic "},
			placeholder(word(fromKey(Medium, 1024, `(?i:bearer) +[0-9A-Za-z._~+/=-]{24,}|(?i:basic) +[0-9A-Za-z+/]{16,}={0,2}(?:["'\s]|\z)`)))),
		credential("assignment", "value that looks like a secret, given to a name that says so", secretNames, assignment).cheap(),
	)
}

func credential(name, what string, keys []string, c confirm) rule {
	return rule{name: "credential." + name, cat: Credential, what: what, keys: keys, match: c}
}

// cased demands the keyword in the case it was written in; the automaton ignores case.
func cased(key string, c confirm) confirm {
	return func(t *target, s, e int) (int, int, Severity) {
		text := t.text
		if text[s:e] != key {
			return 0, 0, 0
		}
		return c(t, s, e)
	}
}

// placeholder lowers what is plainly an example.
func placeholder(c confirm) confirm {
	return func(t *target, s, e int) (int, int, Severity) {
		text := t.text
		from, to, sev := c(t, s, e)
		if sev > Low && isPlaceholder(text[from:to]) {
			sev = Low
		}
		return from, to, sev
	}
}

// placeholders are words that only stand in values made up for show.
var placeholders = sync.OnceValue(func() *automaton {
	var words []keyword
	for _, w := range []string{"example", "placeholder", "your_", "your-", "changeme", "change_me", "change-me", "dummy", "redacted", "xxxxxx", "****",
		"0000000000", "...", "<", "123456789", "abcdefgh", "deadbeef", "testkey", "test_key", "test-key", "testtoken", "test_token", "test-token", "testsecret",
		"test_secret", "test-secret", "testpassword", "test_password", "test-password", "notreal", "not_real", "not-real", "not_a_real", "not-a-real", "fake", "sample"} {
		words = append(words, keyword{w, 0})
	}
	return newAutomaton(words)
})

func isPlaceholder(s string) bool {
	return placeholders().finds(s) || len(s) >= 16 && entropy(s) < 2.5
}

// entropy returns the bits per byte of the byte distribution of s.
func entropy(s string) float64 {
	var counts [256]int
	for i := 0; i < len(s); i++ {
		counts[s[i]]++
	}
	bits := 0.0
	for _, n := range counts {
		if n > 0 {
			p := float64(n) / float64(len(s))
			bits -= p * math.Log2(p)
		}
	}
	return bits
}

var (
	keyHeader = regexp.MustCompile(`\A(?i:-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----|---- BEGIN SSH2 ENCRYPTED PRIVATE KEY|PuTTY-User-Key-File-\d)`)
	keyBody   = regexp.MustCompile(`\A(?:\\?["']?[\s,+\\nr"']|[A-Za-z-]+: [^\n]{0,80}\n)*[0-9A-Za-z+/]{40}`)
	keyFooter = regexp.MustCompile(`(?i)-----END (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----`)
)

// maxKeyBody is how far behind a header the end of a key is looked for.
const maxKeyBody = 8 << 10

// privateKey tells a key from code that only knows what a key's first line looks like.
func privateKey(t *target, s, _ int) (int, int, Severity) {
	text := t.text
	head := keyHeader.FindStringIndex(text[s:min(len(text), s+80)])
	if head == nil {
		return 0, 0, 0
	}
	end := s + head[1]
	rest := text[end:min(len(text), end+maxKeyBody)]
	if !keyBody.MatchString(rest[:min(len(rest), 400)]) {
		return s, end, Low
	}
	if foot := keyFooter.FindStringIndex(rest); foot != nil {
		return s, end + foot[1], High
	}
	return s, end + len(rest), High
}

// maxAuthority is how long the part of a URL may be in which a password stands.
const maxAuthority = 340

// splitAuthority returns user, password and host of the URL whose "://" stands at s, if it has a
// password, and the offset behind the host.
func splitAuthority(text string, s int) (password, host string, end int) {
	rest := text[s+3 : min(len(text), s+3+maxAuthority)]
	stop := strings.IndexAny(rest, " \t\r\n/'\"<>`\\?#")
	if stop < 0 {
		stop = len(rest)
	}
	at := strings.LastIndexByte(rest[:stop], '@')
	if at < 0 {
		return "", "", 0
	}
	colon := strings.IndexByte(rest[:at], ':')
	if colon < 0 || colon == at-1 || at+1 == stop {
		return "", "", 0
	}
	return rest[colon+1 : at], rest[at+1 : stop], s + 3 + stop
}

// urlPassword finds scheme://user:password@host.
func urlPassword(t *target, s, _ int) (int, int, Severity) {
	text := t.text
	password, host, end := splitAuthority(text, s)
	if end == 0 {
		return 0, 0, 0
	}
	from := s
	for from > 0 && s-from < 20 && (alnum(text[from-1]) || strings.IndexByte("+-.", text[from-1]) >= 0) {
		from--
	}
	if variable(password) || trivialPassword(password) || isPlaceholder(password) || strings.HasPrefix(host, "localhost") || strings.HasPrefix(host, "127.") || isPlaceholder(host) {
		return from, end, Low
	}
	return from, end, Medium
}

func trivialPassword(p string) bool {
	switch strings.ToLower(p) {
	case "password", "pass", "secret", "postgres", "root", "admin", "user", "guest", "test", "mysql", "pw", "pwd", "passwd", "token":
		return true
	}
	return false
}

// variable reports whether a value is a reference to be filled in, not a value.
func variable(v string) bool {
	return strings.HasPrefix(v, "$") || strings.HasPrefix(v, "{") || strings.HasPrefix(v, "%") || strings.HasPrefix(v, "<") ||
		strings.Contains(v, "${") || strings.Contains(v, "{{") || strings.Contains(v, "process.env") || strings.Contains(v, "environ") || strings.Contains(v, "getenv")
}

// secretNames end the names of fields, flags and variables that hold secrets.
var secretNames = []string{"password", "passwd", "passphrase", "secret", "token", "api_key", "apikey", "api-key", "access_key",
	"access-key", "accesskey", "private_key", "privatekey", "client_secret", "auth_key", "encryption_key", "signing_key"}

// assignment finds name = "value" where the value is too random to be a word.
func assignment(t *target, s, e int) (int, int, Severity) {
	text := t.text
	start, end, quoted := assigned(text, e)
	value := text[start:end]
	if len(value) < 8 || !quoted && len(value) < 16 || len(value) > 200 || variable(value) || !random(value) || isPlaceholder(value) {
		return 0, 0, 0
	}
	return s, end, Medium
}

// assigned returns the value given to the name whose keyword ends at e. It is written by hand because
// these keywords are frequent in code, and nearly always there is no such value.
func assigned(text string, e int) (start, end int, quoted bool) {
	i := e
	for i < len(text) && i-e < 24 && (alnum(text[i]) || text[i] == '_' || text[i] == '-') {
		i++
	}
	for n := 0; i < len(text) && n < 3 && strings.IndexByte("\\\"']", text[i]) >= 0; n++ {
		i++
	}
	i = skipBlanks(text, i, 3)
	sep := i
	for i < len(text) && i-sep < 2 && strings.IndexByte(":=>", text[i]) >= 0 {
		i++
	}
	if i == sep || text[sep] == '>' || text[sep:i] == "==" {
		return 0, 0, false
	}
	i = skipBlanks(text, i, 3)
	if i < len(text) && text[i] == '\\' {
		i++
	}
	if quoted = i < len(text) && isQuote(text[i]); quoted {
		i++
	}
	end = i
	for end < len(text) && end-i <= 200 && text[end] > ' ' && strings.IndexByte("\"'`\\", text[end]) < 0 {
		if !quoted && strings.IndexByte(",;(){}<>", text[end]) >= 0 {
			break
		}
		end++
	}
	if quoted && (end == len(text) || strings.IndexByte("\"'`\\", text[end]) < 0) {
		return 0, 0, false // no word, or not closed
	}
	return i, end, quoted
}

// random reports whether a value mixes letters and digits and varies enough not to be a word, a
// path or a version.
func random(v string) bool {
	digits, letters := 0, 0
	for i := 0; i < len(v); i++ {
		switch c := v[i]; {
		case c >= '0' && c <= '9':
			digits++
		case alnum(c):
			letters++
		}
	}
	if digits == 0 || letters == 0 || strings.ContainsAny(v, "/@") && strings.Contains(v, ".") {
		return false
	}
	return len(v) >= 12 && entropy(v) >= 3.0 || len(v) >= 8 && entropy(v) >= 2.75 && strings.ContainsAny(v, "!@#$%^&*+?")
}
