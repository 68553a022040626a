package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/term"

	"github.com/seed-3ebc6b8a/gatehouse/internal/match"
)

// printJSON writes a value for machines.
func printJSON(w io.Writer, v any) error {
	data, err := json.Marshal(v, jsontext.Multiline(true))
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "%s\n", data)
	return err
}

// table writes rows in columns. Every cell is made visible: what agents wrote
// must not move the cursor of the person who reads it.
func table(w io.Writer, head string, rows [][]string) error {
	tw := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	fmt.Fprintln(tw, strings.ReplaceAll(strings.ToUpper(head), ",", "\t"))
	for _, row := range rows {
		for i, cell := range row {
			row[i] = match.Visible(cell)
		}
		fmt.Fprintln(tw, strings.Join(row, "\t"))
	}
	return tw.Flush()
}

// Colours carry meaning only: green goes ahead, yellow asks, red stops.
const (
	green  = "32"
	yellow = "33"
	red    = "31"
	bold   = "1"
	dim    = "2"
)

// paint colours a text on a terminal that wants colours.
func paint(w io.Writer, colour, text string) string {
	f, ok := w.(*os.File)
	if !ok || os.Getenv("NO_COLOR") != "" || !term.IsTerminal(int(f.Fd())) {
		return text
	}
	return "\x1b[" + colour + "m" + text + "\x1b[0m"
}

// ago says how long ago, or in how long, something is.
func ago(t, now time.Time) string {
	d := now.Sub(t).Round(time.Second)
	if d < 0 {
		return "in " + (-d).String()
	}
	return d.String() + " ago"
}

// stamp writes a time for people.
func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Local().Format("2006-01-02 15:04:05")
}

// quoteJSON writes a string as JSON.
func quoteJSON(s string) string {
	b, err := jsontext.AppendQuote(nil, s)
	if err != nil {
		return `""`
	}
	return string(b)
}
