package console

import (
	"net/http"
)

type signInView struct {
	Token string
	Error string
}

// signInPage shows a button. Redeeming waits for the button, so that whatever
// fetches links to preview them does not use one up.
func (c *Console) signInPage(w http.ResponseWriter, r *http.Request) {
	c.writeSignIn(w, r, http.StatusOK, signInView{Token: r.URL.Query().Get("token")})
}

func (c *Console) writeSignIn(w http.ResponseWriter, r *http.Request, status int, v signInView) {
	if err := c.write(w, r, status, "signin", frame{Title: "Sign in", Page: v}); err != nil {
		c.fail(w, r, err)
	}
}

// askToSignIn answers whoever is not signed in. A person who follows a link
// from another site comes without the cookie, because it is strict; their
// browser is sent to the same address once more, from here.
func (c *Console) askToSignIn(w http.ResponseWriter, r *http.Request) {
	site := r.Header.Get("Sec-Fetch-Site")
	if r.Header.Get("Sec-Fetch-Mode") == "navigate" && (site == "cross-site" || site == "same-site") {
		if err := c.write(w, r, http.StatusOK, "bounce", frame{Title: "Gatehouse", Page: r.URL.RequestURI()}); err != nil {
			c.fail(w, r, err)
		}
		return
	}
	c.writeSignIn(w, r, http.StatusUnauthorized, signInView{})
}

// signIn redeems a link. Its answer is a page and not a redirect, because the
// page must put the proof into the storage of this origin.
func (c *Console) signIn(w http.ResponseWriter, r *http.Request) {
	if err := r.ParseForm(); err != nil {
		c.refuse(w, r, http.StatusBadRequest, "Not understood", "The form was damaged.")
		return
	}
	cookie, name, expires, err := c.desk.SignIn(r.Context(), r.PostForm.Get("token"), r.RemoteAddr)
	if err != nil {
		c.writeSignIn(w, r, http.StatusForbidden, signInView{Error: c.publicText(r, err)})
		return
	}
	c.setCookie(w, &http.Cookie{Name: c.cookieName(r), Value: cookie, Expires: expires})
	page := struct{ Proof string }{c.keys.proof(cookie)}
	if err := c.write(w, r, http.StatusOK, "signedin", frame{Title: "Signed in", Who: name, Page: page}); err != nil {
		c.fail(w, r, err)
	}
}

func (c *Console) signOut(w http.ResponseWriter, r *http.Request, v visitor) error {
	if err := c.desk.SignOut(r.Context(), v.cookie); err != nil {
		return err
	}
	c.setCookie(w, &http.Cookie{Name: c.cookieName(r), MaxAge: -1})
	http.Redirect(w, r, "/signin", http.StatusSeeOther)
	return nil
}
