package console

import (
	"net/http"
	"strings"

	"github.com/seed-3ebc6b8a/gatehouse/internal/activation"
	"github.com/seed-3ebc6b8a/gatehouse/internal/admin"
)

func (c *Console) elementsPage(w http.ResponseWriter, r *http.Request, who visitor) error {
	all, err := c.desk.Elements(r.Context())
	if err != nil {
		return err
	}
	factor, err := c.hasFactor(r, who)
	if err != nil {
		return err
	}
	page := struct {
		admin.Elements
		Factor bool
	}{all, factor}
	return c.render(w, r, who, "elements", frame{Title: "Elements", Nav: "elements", Page: page})
}

func (c *Console) acceptElement(r *http.Request, who visitor) (done, error) {
	d := done{"/elements", "Accepted. The element is in force as it is on disk.", "allow"}
	f := r.PostForm
	s := activation.Staged{Agent: f.Get("agent"), Workspace: f.Get("workspace"), Element: f.Get("element")}
	if err := s.Digest.UnmarshalText([]byte(f.Get("digest"))); err != nil {
		return d, problem("The form does not say which change was shown. Open the page again.")
	}
	return d, c.desk.AcceptElement(r.Context(), who.actor(), s, strings.TrimSpace(f.Get("code")))
}

func (c *Console) releaseElement(r *http.Request, who visitor) (done, error) {
	d := done{"/elements", "Released. The element is not in force any more.", "allow"}
	f := r.PostForm
	return d, c.desk.ReleaseElement(r.Context(), who.actor(), f.Get("agent"), f.Get("workspace"), f.Get("element"), strings.TrimSpace(f.Get("code")))
}
