package console

import (
	"bytes"
	"html/template"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/seed-3ebc6b8a/gatehouse/internal/admin"
	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/grant"
)

// maxShown is how much of a call fits on a page that a person can be said to
// have seen. What is longer can be edited, answered and denied, not approved.
const maxShown = 256 << 10

// argView is one argument, or another part of the call that reaches the
// effect, as it is shown.
type argView struct {
	Name  string
	Type  string
	HTML  template.HTML
	Lines int
	Bytes int
}

// requestView is one request as the pages show it.
type requestView struct {
	admin.Request
	Facts admin.Facts
	// Title is one line that says what the call does.
	Title string
	Args  []argView
	// Preview is the beginning of the call, for a card that does not show it
	// whole.
	Preview template.HTML
	// JSON is the arguments as one text, Form the same for editing.
	JSON template.HTML
	Form string
	// EditError says what is wrong with Form, if it was sent and refused.
	EditError string
	// TooLong says that the call is longer than a person can be shown.
	TooLong bool
	// Why lists the reasons of the votes that ask.
	Why       []string
	Stages    []stageView
	Conflicts []call.Conflict
	Places    []call.Need
	RiskIs    string
	// HostRuns says that the agent's host, and not the gate, runs the call.
	HostRuns bool
	Session  *admin.Session
	// Code is the code that approves the call when the agent hands it in, ""
	// where none was asked for.
	Code string
	// Factor says that the person has a second factor enrolled.
	Factor bool
	// Token says when this was rendered, signed.
	Token string
	// Brief requests are shown whole on their card in the inbox and can be
	// approved there.
	Brief bool
}

// stageView is what one stage said.
type stageView struct {
	Name  string
	Votes []call.Vote
}

// Waits reports whether the request can still be answered.
func (v *requestView) Waits() bool { return v.State == "pending" }

// Level is what the decision asks for.
func (v *requestView) Level() string {
	if v.Decision == nil {
		return ""
	}
	return v.Decision.Level.String()
}

// SessionOffers returns the offers that last longer than one call, each with
// its index.
func (v *requestView) SessionOffers() map[int]sessionOffer {
	offers := make(map[int]sessionOffer)
	for i, o := range v.Offers {
		if o.Use == grant.Session {
			offer := sessionOffer{Words: o.Words, Suggested: o.Suggested}
			if i < len(v.History) {
				offer.Past = v.History[i]
			}
			offers[i] = offer
		}
	}
	return offers
}

// sessionOffer is an offer with what it would have covered before.
type sessionOffer struct {
	Words string
	Past  []admin.PastCall
	// Suggested says that active elements have this answer in mind.
	Suggested bool
}

// shownPast is how many earlier calls are named; the rest is counted.
const shownPast = 3

// Few are the newest of the earlier calls.
func (o sessionOffer) Few() []admin.PastCall { return o.Past[:min(len(o.Past), shownPast)] }

// More is how many there are besides.
func (o sessionOffer) More() int { return max(len(o.Past)-shownPast, 0) }

// Lasting reports whether a rule might let such calls through: rules reach
// what tools do, can be undone and destroys nothing.
func (v *requestView) Lasting() bool {
	return v.Call != nil && v.Call.Kind == call.External && !v.Pinned && !v.Facts.Irreversible && len(v.Facts.Destroys) == 0
}

// view prepares a request for showing.
func (c *Console) view(r *admin.Request) *requestView {
	v := &requestView{Request: *r, Title: r.ID, Token: c.keys.shown(r.ID, r.Digest, time.Now())}
	if r.Facts != nil {
		v.Facts = *r.Facts
	}
	v.RiskIs = riskWords(v.Facts.Risk)
	if r.Call != nil {
		v.Title = r.Call.Operation
		v.HostRuns = strings.HasPrefix(r.Call.Surface, "hook:")
		v.showCall(r.Call)
	}
	if v.Facts.Words != "" {
		v.Title = v.Facts.Words
	}
	for _, n := range v.Facts.Needs {
		if isPlace(n.Capability) && n.Scope != "" {
			v.Places = append(v.Places, n)
		}
	}
	if r.Decision != nil {
		v.showDecision(r.Decision)
	}
	if v.Brief = v.brief(); !v.Brief && r.Call != nil {
		v.Preview, _, _ = visibleText(shorten(telltale(r.Call.Args)))
	}
	return v
}

// showCall makes every byte of the call visible.
func (v *requestView) showCall(c *call.Call) {
	size := 0
	add := func(name, typ string, html template.HTML, lines, n int) {
		size += n
		v.Args = append(v.Args, argView{name, typ, html, lines, n})
	}
	if len(c.Args) > maxShown {
		v.showStart(c)
		return
	}
	for name, value := range members(c.Args) {
		if value.Kind() == '"' {
			if text, err := jsontext.AppendUnquote(nil, value); err == nil {
				html, lines, n := visibleText(string(text))
				add(name, "text", html, lines, n)
				continue
			}
		}
		html, _, lines, n := visibleJSON(value)
		add(name, jsonType(value), html, lines, n)
	}
	for _, f := range c.Forward {
		html, lines, n := visibleText(f.Value)
		add(f.Name, "forwarded", html, lines, n)
	}
	if size+len(c.Note)+len(c.Dir) > maxShown {
		v.showStart(c)
		return
	}
	v.JSON, v.Form, _, _ = visibleJSON(c.Args)
}

// showStart shows the beginning of a call that is too long to be shown whole,
// to tell what it is. It cannot be approved, so a page that loads beats a page
// that is whole.
func (v *requestView) showStart(c *call.Call) {
	v.TooLong = true
	html, lines, n := visibleText(strings.ToValidUTF8(string(c.Args[:min(len(c.Args), 8<<10)]), ""))
	v.Args = []argView{{"the first 8 KiB of the arguments", "json", html, lines, n}}
}

// members yields the members of a JSON object; of anything else it yields one
// without a name.
func members(args jsontext.Value) func(yield func(string, jsontext.Value) bool) {
	return func(yield func(string, jsontext.Value) bool) {
		dec := jsontext.NewDecoder(bytes.NewReader(args))
		if tok, err := dec.ReadToken(); err != nil || tok.Kind() != '{' {
			yield("", args)
			return
		}
		for dec.PeekKind() != '}' {
			name, err := dec.ReadToken()
			if err != nil {
				return
			}
			key := name.String()
			value, err := dec.ReadValue()
			if err != nil || !yield(key, value.Clone()) {
				return
			}
		}
	}
}

func jsonType(v jsontext.Value) string {
	switch v.Kind() {
	case '{':
		return "object"
	case '[':
		return "list"
	case '0':
		return "number"
	case 't', 'f':
		return "true or false"
	case 'n':
		return "null"
	}
	return "json"
}

func (v *requestView) showDecision(d *call.Decision) {
	for _, vote := range d.Confirmations() {
		if vote.Reason != "" && !slices.Contains(v.Why, vote.Reason) {
			v.Why = append(v.Why, vote.Reason)
		}
	}
	v.Conflicts = d.Conflicts()
	for _, b := range d.Ballots {
		v.Stages = append(v.Stages, stageView{b.Stage.String(), b.Votes})
	}
}

// brief reports whether a card in the inbox shows all there is to know: a
// short call that can be undone and needs no second look.
func (v *requestView) brief() bool {
	f, lines, size := &v.Facts, 0, 0
	for _, a := range v.Args {
		lines, size = lines+a.Lines, size+a.Bytes
	}
	return v.Waits() && v.Call != nil && !v.TooLong && !v.Pinned && lines <= 12 && size <= 1000 && len(v.Call.Dir) <= 200 &&
		!f.Irreversible && !f.Outside && len(f.Uncommitted) == 0 && len(f.Findings) == 0
}

func (c *Console) requestPage(w http.ResponseWriter, r *http.Request, who visitor) error {
	v, err := c.showRequest(r, who, r.PathValue("id"))
	if err != nil {
		return err
	}
	return c.render(w, r, who, "request", frame{Title: v.Title, Nav: "inbox", View: "request", ViewID: v.ID, Page: v})
}

// showRequest reads a request with all that its own page shows.
func (c *Console) showRequest(r *http.Request, who visitor, id string) (*requestView, error) {
	req, err := c.desk.Request(r.Context(), id)
	if err != nil {
		return nil, err
	}
	v := c.view(req)
	if req.Call != nil {
		if v.Session, err = c.session(r, req.Call.Principal.Session); err != nil {
			return nil, err
		}
	}
	waiting, err := c.codes(r, who)
	if err != nil {
		return nil, err
	}
	v.Factor = waiting.Factor
	for _, ch := range waiting.List {
		if ch.Kind == "request" && ch.Subject == id {
			v.Code = ch.Code
		}
	}
	return v, nil
}

// session finds the session a call belongs to, nil if it is not known.
func (c *Console) session(r *http.Request, id string) (*admin.Session, error) {
	all, err := c.desk.Sessions(r.Context())
	if err != nil {
		return nil, err
	}
	if i := slices.IndexFunc(all, func(s admin.Session) bool { return s.ID == id }); i >= 0 {
		return &all[i], nil
	}
	return nil, nil
}

// hasFactor reports whether a person has a second factor enrolled.
func (c *Console) hasFactor(r *http.Request, who visitor) (bool, error) {
	all, err := c.desk.Approvers(r.Context())
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(all, func(a admin.Approver) bool { return a.Name == who.name && a.TOTP }), nil
}
