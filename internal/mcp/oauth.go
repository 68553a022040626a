package mcp

import (
	"net/http"
	"strings"

	"github.com/go-json-experiment/json"
)

// MetadataPath is where clients find out how to get a token (RFC 9728).
const MetadataPath = "/.well-known/oauth-protected-resource/mcp"

// Metadata describes the resource that tokens are for. A token is good for this
// gate alone; where an issuer is trusted, the tokens must name it as audience.
func Metadata(baseURL string, issuers []string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		resource := baseURL + strings.TrimPrefix(r.URL.Path, "/.well-known/oauth-protected-resource")
		if resource == baseURL {
			resource += "/mcp"
		}
		doc := map[string]any{
			"resource": resource, "bearer_methods_supported": []string{"header"},
			"resource_name": "Gatehouse", "resource_documentation": baseURL + "/",
		}
		if len(issuers) > 0 {
			doc["authorization_servers"] = issuers
		}
		body, err := json.Marshal(doc, json.Deterministic(true))
		if err != nil {
			http.Error(w, "internal error", http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "no-store")
		_, _ = w.Write(body) // a client that is gone asks again
	})
}
