package console

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
)

// policyHeader lets pages load nothing but our own files and talk to nobody
// but us.
const policyHeader = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; " +
	"connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// setHeaders goes on every answer, refusals included.
func setHeaders(h http.Header) {
	h.Set("Content-Security-Policy", policyHeader)
	h.Set("X-Frame-Options", "DENY")
	h.Set("X-Content-Type-Options", "nosniff")
	// Not no-referrer: with that, browsers send "Origin: null" from our forms.
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=(), payment=(), usb=()")
	h.Set("Cache-Control", "no-store")
}

// guard says why a request is refused before any page runs, "" if it is not.
func (c *Console) guard(r *http.Request) string {
	if !c.knownHost(r.Host) {
		return "This console does not answer to that host name. Open it under the address that it was started with."
	}
	if origin := r.Header.Get("Origin"); origin != "" && !c.ownOrigin(origin, r.Host) {
		return "That request came from another site."
	}
	if err := c.cross.Check(r); err != nil {
		return "That request came from another site."
	}
	// Reads from other sites and from other ports of this host get nothing
	// either; only a person who follows a link may come from there.
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "none", "same-origin":
		return ""
	}
	if r.Header.Get("Sec-Fetch-Mode") != "navigate" || r.Header.Get("Sec-Fetch-Dest") != "document" {
		return "That request came from another site."
	}
	return ""
}

// knownHost reports whether the Host header is one of ours. A name that
// someone else's DNS points at this machine is not.
func (c *Console) knownHost(host string) bool {
	if c.hosts[strings.ToLower(host)] {
		return true
	}
	name := strings.ToLower(hostname(host))
	if c.hosts[name] || name == "localhost" {
		return true
	}
	addr, err := netip.ParseAddr(name)
	return err == nil && addr.Zone() == "" && addr.Unmap().IsLoopback()
}

// hostname cuts the port and the brackets off a Host header.
func hostname(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		return name
	}
	return strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
}

// ownOrigin reports whether an Origin header names this console.
func (c *Console) ownOrigin(origin, host string) bool {
	u, err := url.Parse(origin)
	if err != nil || !strings.EqualFold(u.Host, host) {
		return false
	}
	return u.Scheme == "https" || u.Scheme == "http" && !c.secure
}

// cookieName differs by port, because two gates on one machine share the
// host and so its cookies.
func (c *Console) cookieName(r *http.Request) string {
	name := "gatehouse"
	if _, port, err := net.SplitHostPort(r.Host); err == nil {
		name += "-" + port
	}
	if c.secure {
		return "__Host-" + name
	}
	return name
}

// setCookie gives the browser a cookie that scripts cannot read and that no
// other site makes it send.
func (c *Console) setCookie(w http.ResponseWriter, cookie *http.Cookie) {
	cookie.Path, cookie.HttpOnly, cookie.Secure, cookie.SameSite = "/", true, c.secure, http.SameSiteStrictMode
	http.SetCookie(w, cookie)
}

// signedIn returns who makes the request and with which cookie, "" for nobody.
func (c *Console) signedIn(r *http.Request) (approver, cookie string) {
	ck, err := r.Cookie(c.cookieName(r))
	if err != nil || ck.Value == "" {
		return "", ""
	}
	approver, err = c.desk.CheckCookie(r.Context(), ck.Value)
	if err != nil || approver == "" {
		return "", ""
	}
	return approver, ck.Value
}
