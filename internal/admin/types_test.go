package admin_test

import (
	"reflect"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"

	"github.com/seed-3ebc6b8a/gatehouse/internal/admin"
	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
)

// TestFactsEncoding: facts that are written quickly are written as they are plainly, each field with the usual ones.
func TestFactsEncoding(t *testing.T) {
	t.Parallel()
	usual := admin.Facts{Words: "says \"<hello>\"", Class: "unknown", Needs: []call.Need{}, Risk: 40}
	all := []admin.Facts{{}, usual, {Needs: []call.Need{}}}
	for i := range reflect.TypeFor[admin.Facts]().NumField() {
		more := usual
		switch f := reflect.ValueOf(&more).Elem().Field(i); f.Kind() {
		case reflect.Bool:
			f.SetBool(true)
		case reflect.Slice:
			empty := usual
			reflect.ValueOf(&empty).Elem().Field(i).Set(reflect.MakeSlice(f.Type(), 0, 0))
			all = append(all, empty)
			f.Set(reflect.MakeSlice(f.Type(), 1, 1))
		default:
			f.SetZero()
		}
		all = append(all, more)
	}
	for _, f := range all {
		want, err := json.Marshal(f)
		if err != nil {
			t.Fatal(err)
		}
		got, err := f.AppendJSON([]byte("before "))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff("before "+string(want), string(got)); diff != "" {
			t.Errorf("facts (-want +got):\n%s", diff)
		}
	}
}
