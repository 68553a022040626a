package mcp

import (
	"context"
	"errors"

	"github.com/go-json-experiment/json/jsontext"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
)

// Resource describes something of the gate's own that can be read. A template's
// address has a part in braces.
type Resource struct {
	URI, Name, Description string
	Template               bool
}

// Resources is what of the gate's own can be read, as JSON.
type Resources interface {
	List() []Resource
	// Read returns what an address stands for, for one principal; nil if there is
	// no such thing.
	Read(ctx context.Context, who call.Principal, uri string) (jsontext.Value, error)
}

// ownResources answers what is asked about the gate's own resources. It stands
// before the library's own handlers because those refuse addresses whose scheme
// has an underscore, which is how the cache state's is spelled.
func ownResources(r Resources) sdk.Middleware {
	return func(next sdk.MethodHandler) sdk.MethodHandler {
		return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
			switch method {
			case "resources/list":
				out := &sdk.ListResourcesResult{Resources: []*sdk.Resource{}}
				for _, d := range r.List() {
					if !d.Template {
						out.Resources = append(out.Resources, &sdk.Resource{URI: d.URI, Name: d.Name, Description: d.Description, MIMEType: "application/json"})
					}
				}
				return out, nil
			case "resources/templates/list":
				out := &sdk.ListResourceTemplatesResult{ResourceTemplates: []*sdk.ResourceTemplate{}}
				for _, d := range r.List() {
					if d.Template {
						out.ResourceTemplates = append(out.ResourceTemplates, &sdk.ResourceTemplate{URITemplate: d.URI, Name: d.Name, Description: d.Description, MIMEType: "application/json"})
					}
				}
				return out, nil
			case "resources/read":
				return readOwn(ctx, r, req)
			}
			return next(ctx, method, req)
		}
	}
}

func readOwn(ctx context.Context, r Resources, req sdk.Request) (sdk.Result, error) {
	who, known := ctx.Value(callerKey{}).(*ownCaller)
	params, ok := req.GetParams().(*sdk.ReadResourceParams)
	if !known || !ok {
		return nil, errors.New("nobody said who is reading what")
	}
	text, err := r.Read(ctx, who.Principal, params.URI)
	if err != nil {
		return nil, err
	}
	if text == nil {
		return nil, sdk.ResourceNotFoundError(params.URI)
	}
	return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{URI: params.URI, MIMEType: "application/json", Text: string(text)}}}, nil
}
