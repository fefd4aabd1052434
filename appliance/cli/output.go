package cli

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"sigs.k8s.io/yaml"
)

// table is rows of cells; the first row is the heading.
type table [][]string

// print writes v as --output says; rows makes its table.
func (a *App) print(v any, rows func() table) error {
	switch a.flags.output {
	case "json":
		raw, err := json.MarshalIndent(v, "", "  ")
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(a.Out, "%s\n", raw)
		return err
	case "yaml":
		raw, err := yaml.Marshal(v)
		if err != nil {
			return err
		}
		_, err = a.Out.Write(raw)
		return err
	}
	_, err := fmt.Fprint(a.Out, rows())
	return err
}

// String aligns the columns. What came from tenants and guests loses its
// control characters, so that it cannot play with the terminal.
func (t table) String() string {
	var widths []int
	for r, row := range t {
		for c, cell := range row {
			cell = printable(cell)
			if cell == "" {
				cell = "-"
			}
			t[r][c] = cell
			if c == len(widths) {
				widths = append(widths, 0)
			}
			widths[c] = max(widths[c], utf8.RuneCountInString(cell))
		}
	}
	var b strings.Builder
	for _, row := range t {
		for c, cell := range row {
			b.WriteString(cell)
			if c < len(row)-1 {
				b.WriteString(strings.Repeat(" ", widths[c]-utf8.RuneCountInString(cell)+3))
			}
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 {
			return ' '
		}
		return r
	}, s)
}
