package console

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/seed-3ebc6b8a/gatehouse/internal/admin"
	"github.com/seed-3ebc6b8a/gatehouse/internal/match"
)

// asset is a file that pages load.
type asset struct {
	body        []byte
	contentType string
	version     string
}

var assetTypes = map[string]string{".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}

func loadAssets() map[string]asset {
	assets := make(map[string]asset)
	entries, _ := fs.ReadDir(files, "assets") // embedded: always there
	for _, e := range entries {
		body, _ := files.ReadFile("assets/" + e.Name())
		sum := sha256.Sum256(body)
		assets[e.Name()] = asset{body, assetTypes[path.Ext(e.Name())], hex.EncodeToString(sum[:6])}
	}
	return assets
}

// loadPages parses each page together with the frame and the shared parts.
func (c *Console) loadPages() map[string]*template.Template {
	base := template.Must(template.New("base").Funcs(c.funcs()).ParseFS(files, "templates/frame.html", "templates/parts.html"))
	pages := make(map[string]*template.Template)
	names, _ := fs.Glob(files, "templates/*.html")
	for _, name := range names {
		page := strings.TrimSuffix(path.Base(name), ".html")
		if page != "frame" && page != "parts" {
			pages[page] = template.Must(template.Must(base.Clone()).ParseFS(files, name))
		}
	}
	return pages
}

func (c *Console) funcs() template.FuncMap {
	return template.FuncMap{
		"asset":    func(name string) string { return "/assets/" + name + "?v=" + c.assets[name].version },
		"vis":      visibleLine,
		"visText":  func(s string) template.HTML { html, _, _ := visibleText(s); return html },
		"tone":     tone,
		"levelIs":  levelWords,
		"full":     func(t time.Time) string { return t.In(c.zone).Format("2 Jan 2006, 15:04:05 MST") },
		"stamp":    func(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) },
		"zone":     func() string { return time.Now().In(c.zone).Format("MST") },
		"when":     c.when,
		"short":    func(s string) string { return s[:min(len(s), 12)] },
		"title":    titleCase,
		"plural":   plural,
		"needIs":   needWords,
		"duration": durationWords,
		"left":     func(t time.Time) int { return max(0, int(time.Until(t).Seconds())) },
		"plain":    match.Visible,
		"answered": func(r admin.Request) string { return c.answered(&r) },
	}
}

// when writes a time as short as it can be read today.
func (c *Console) when(t time.Time) string {
	t, now := t.In(c.zone), time.Now().In(c.zone)
	switch {
	case t.IsZero():
		return "never"
	case t.YearDay() == now.YearDay() && t.Year() == now.Year():
		return t.Format("15:04:05")
	case t.Year() == now.Year():
		return t.Format("2 Jan 15:04:05")
	}
	return t.Format("2 Jan 2006 15:04")
}

// frame is what every page has around its content.
type frame struct {
	Title string
	// Nav names the entry of the menu that is current.
	Nav string
	// View and ViewID say what the page wants to hear about on its stream.
	View, ViewID string
	Theme        string
	Who          string
	Flash        *flash
	Pending      int
	Kill         admin.Kill
	Policy       admin.Policy
	// Codes names the challenges that wait.
	Codes string
	// Status is the HTTP status, 0 for 200.
	Status int
	Page   any
}

// maxPending bounds what an inbox reads; the gate's own ceilings are far
// below it.
const maxPending = 500

// pending reads all requests that wait, the oldest first: it is the next to
// expire, and new ones go below.
func (c *Console) pending(r *http.Request) ([]admin.Request, error) {
	var all []admin.Request
	for cursor := ""; ; {
		list, next, err := c.desk.Requests(r.Context(), "pending", cursor, 100)
		if err != nil {
			return nil, err
		}
		all = append(all, list...)
		if next == "" || len(all) >= maxPending {
			slices.SortStableFunc(all, func(a, b admin.Request) int { return a.Filed.Compare(b.Filed) })
			return all, nil
		}
		cursor = next
	}
}

// render fills in the frame and writes a page for a signed-in person.
func (c *Console) render(w http.ResponseWriter, r *http.Request, v visitor, name string, f frame) error {
	list, err := c.pending(r)
	if err != nil {
		return err
	}
	if f.Kill, err = c.desk.Kill(r.Context()); err != nil {
		return err
	}
	if f.Policy, err = c.desk.Policy(r.Context()); err != nil {
		return err
	}
	if f.Codes, err = c.waitingCodes(r); err != nil {
		return err
	}
	f.Pending, f.Who = len(list), v.name
	f.Flash = c.takeFlash(w, r)
	if f.Status == 0 {
		f.Status = http.StatusOK
	}
	return c.write(w, r, f.Status, name, f)
}

// setFlash leaves a message for the next page.
func (c *Console) setFlash(w http.ResponseWriter, r *http.Request, f flash) {
	c.setCookie(w, &http.Cookie{Name: c.cookieName(r) + "-flash", Value: c.keys.sealFlash(f), MaxAge: 60})
}

// takeFlash reads the message that an act left, and forgets it.
func (c *Console) takeFlash(w http.ResponseWriter, r *http.Request) *flash {
	name := c.cookieName(r) + "-flash"
	ck, err := r.Cookie(name)
	if err != nil {
		return nil
	}
	c.setCookie(w, &http.Cookie{Name: name, MaxAge: -1})
	fl, ok := c.keys.openFlash(ck.Value)
	if !ok {
		return nil
	}
	return &fl
}

// write executes a page into memory first, so that a failure is an error page
// and not half a page.
func (c *Console) write(w http.ResponseWriter, r *http.Request, status int, name string, f frame) error {
	if ck, err := r.Cookie("gatehouse-theme"); err == nil && (ck.Value == "dark" || ck.Value == "light") {
		f.Theme = ck.Value
	}
	var b bytes.Buffer
	if err := c.pages[name].ExecuteTemplate(&b, "frame", f); err != nil {
		return fmt.Errorf("page %s: %w", name, err)
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(b.Bytes()) // the browser went away
	return nil
}

// part executes a shared part of a page by itself.
func (c *Console) part(name string, data any) (string, error) {
	var b strings.Builder
	err := c.pages["inbox"].ExecuteTemplate(&b, name, data)
	return b.String(), err
}

func writeJSON(w http.ResponseWriter, status int, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(body) // the browser went away
	return nil
}

// publicError is an error with a text for the person.
type publicError interface{ Public() string }

// problem is a publicError of the console's own.
type problem string

func (p problem) Error() string  { return string(p) }
func (p problem) Public() string { return string(p) }

// publicText returns what a person may read of an error, and logs the rest.
func (c *Console) publicText(r *http.Request, err error) string {
	var p publicError
	if errors.As(err, &p) {
		return p.Public()
	}
	c.log.Error("console: "+r.Method+" failed", "path", r.URL.Path, "err", err)
	return "Something went wrong, and nothing was changed as far as is known. The log of the gate says more."
}

// fail shows an error as a page: what is named by an address and not there is
// a 404, what has no public text a 500.
func (c *Console) fail(w http.ResponseWriter, r *http.Request, err error) {
	var p publicError
	if errors.As(err, &p) {
		c.refuse(w, r, http.StatusNotFound, "Not here", p.Public())
		return
	}
	c.refuse(w, r, http.StatusInternalServerError, "Something went wrong", c.publicText(r, err))
}

// refuse writes an error page. It reads nothing from the desk, which may be
// what failed.
func (c *Console) refuse(w http.ResponseWriter, r *http.Request, status int, title, text string) {
	if r.Header.Get("Accept") == "application/json" {
		_ = writeJSON(w, status, map[string]string{"text": text, "tone": "deny"})
		return
	}
	page := struct {
		Status int
		Text   string
	}{status, text}
	if err := c.write(w, r, status, "error", frame{Title: title, Page: page}); err != nil {
		c.log.Error("console: error page failed", "err", err)
		http.Error(w, title, status)
	}
}

func (c *Console) missingPage(w http.ResponseWriter, r *http.Request, _ visitor) error {
	c.refuse(w, r, http.StatusNotFound, "Not here", "There is no page at this address.")
	return nil
}

func (c *Console) serveAsset(w http.ResponseWriter, r *http.Request) {
	a, ok := c.assets[r.PathValue("name")]
	if !ok {
		c.refuse(w, r, http.StatusNotFound, "Not here", "There is no page at this address.")
		return
	}
	// Assets hold nothing private and change their address when they change.
	w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	w.Header().Set("Content-Type", a.contentType)
	_, _ = w.Write(a.body)
}

func (c *Console) serveFavicon(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "image/svg+xml")
	_, _ = w.Write(c.assets["favicon.svg"].body)
}
