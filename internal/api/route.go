package api

import (
	"context"
	"errors"
	"io"
	"net/http"
	"reflect"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
)

// half says who may use a route. The zero value is the approver half: a route
// that forgets to say is closed to agents.
type half uint8

const (
	approverHalf half = iota
	agentHalf
	openHalf // nothing to protect: health, the API's own description
)

// route is one entry of the API.
type route struct {
	method, path string
	half         half
	summary      string
	in, out      reflect.Type // nil where there is none
	serve        func(*Server, http.ResponseWriter, *http.Request, *caller) error
}

// maxBody leaves room for the largest arguments and what wraps them.
const maxBody = call.MaxArgs + 64<<10

// none stands for a missing body.
type none struct{}

// jsonRoute makes a route that reads In, writes Out and has fn in between.
func jsonRoute[In, Out any](method, path string, h half, summary string, fn func(*Server, context.Context, *caller, *http.Request, *In) (*Out, error)) route {
	r := route{method: method, path: path, half: h, summary: summary, in: typeOf[In](), out: typeOf[Out]()}
	r.serve = func(s *Server, w http.ResponseWriter, req *http.Request, c *caller) error {
		in := new(In)
		if r.in != nil {
			if err := readJSON(w, req, in); err != nil {
				return err
			}
		}
		out, err := fn(s, req.Context(), c, req, in)
		if err != nil {
			return err
		}
		if r.out == nil {
			w.WriteHeader(http.StatusNoContent)
			return nil
		}
		return writeJSON(w, http.StatusOK, out)
	}
	return r
}

// as describes what the route writes as an Out, which has the same JSON.
func as[Out any](r route) route {
	r.out = typeOf[Out]()
	return r
}

func typeOf[T any]() reflect.Type {
	t := reflect.TypeFor[T]()
	if t == reflect.TypeFor[none]() {
		return nil
	}
	return t
}

// readJSON reads a body strictly: what is not understood is refused.
func readJSON(w http.ResponseWriter, req *http.Request, in any) error {
	body, err := io.ReadAll(http.MaxBytesReader(w, req.Body, maxBody))
	if err != nil {
		var tooLarge *http.MaxBytesError
		if errors.As(err, &tooLarge) {
			return errTooLarge
		}
		return &Error{Status: http.StatusBadRequest, Text: "the request body could not be read", cause: err}
	}
	if len(body) == 0 {
		return nil
	}
	if err := json.Unmarshal(body, in, json.RejectUnknownMembers(true)); err != nil {
		return &Error{Status: http.StatusBadRequest, Text: "the request body is not what this takes: " + err.Error(), Hint: "GET /v1/openapi.json describes it", cause: err}
	}
	return nil
}

func writeJSON(w http.ResponseWriter, status int, v any) error {
	// What is answered was read strictly or is our own: looking for names that
	// occur twice in it would take longer than all the rest.
	body, err := json.Marshal(v, jsontext.EscapeForHTML(true), jsontext.AllowDuplicateNames(true))
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	body = append(body, '\n')
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, err = w.Write(body)
	return err
}
