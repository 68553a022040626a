package console

import (
	"fmt"
	"net/http"

	"github.com/seed-3ebc6b8a/gatehouse/internal/admin"
	"github.com/seed-3ebc6b8a/gatehouse/internal/restore"
)

func (c *Console) restorePage(w http.ResponseWriter, r *http.Request, who visitor) error {
	list, problems, err := c.desk.RestorePoints(r.Context())
	if err != nil {
		return err
	}
	page := struct {
		Points   []admin.RestorePoint
		Problems []string
	}{list, problems}
	return c.render(w, r, who, "restore", frame{Title: "Restore points", Nav: "restore", Page: page})
}

func (c *Console) restorePointPage(w http.ResponseWriter, r *http.Request, who visitor) error {
	p, err := c.desk.RestorePoint(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	page := struct {
		*admin.RestorePoint
		Newer bool
	}{RestorePoint: p}
	for _, change := range p.Plan.Changes {
		page.Newer = page.Newer || change.Newer && change.State != restore.Missing
	}
	return c.render(w, r, who, "restorepoint", frame{Title: "Restore point", Nav: "restore", Page: page})
}

func (c *Console) applyRestore(r *http.Request, who visitor) (done, error) {
	id := r.PathValue("id")
	d := done{to: "/restore/" + id, tone: "allow"}
	got, err := c.desk.ApplyRestore(r.Context(), who.actor(), id, restore.Apply{
		Digest: r.PostForm.Get("digest"), Paths: r.PostForm["path"], Newer: r.PostForm.Get("newer") == "yes",
	})
	if err != nil {
		return d, err
	}
	failed := 0
	for _, change := range got.Changes {
		if change.Problem != "" {
			failed++
		}
	}
	d.text = fmt.Sprintf("Put back %d of %d. What was there before is kept as %s.", len(got.Changes)-failed, len(got.Changes), got.Undo)
	if failed > 0 {
		d.tone = "deny"
	}
	return d, nil
}
