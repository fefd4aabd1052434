package cli

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"
	"sigs.k8s.io/yaml"
)

// table is rows of cells; the first row is the heading.
type table [][]string

// print writes v in the format of --output; rows builds the table.
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
	t := rows()
	if fd, ok := terminal(a.Out); ok {
		if width, _, err := term.GetSize(fd); err == nil {
			t = t.fit(width)
		}
	}
	_, err := fmt.Fprint(a.Out, t)
	return err
}

const (
	gap     = 3 // columns of space between cells
	leastOf = 8 // minimum width to which a cell is cut
)

// fit makes a table narrow enough for a terminal: it omits the IDs, which names replace, then
// cuts the widest cells. Output to pipes is not cut.
func (t table) fit(width int) table {
	total := func() (sum, widest, at int) {
		for c := range t[0] {
			most := 0
			for _, row := range t {
				most = max(most, utf8.RuneCountInString(row[c]))
			}
			if sum += most + gap; most > widest {
				widest, at = most, c
			}
		}
		return sum - gap, widest, at
	}
	sum, widest, at := total()
	if last := len(t[0]) - 1; sum > width && last > 0 && t[0][last] == "ID" {
		for r := range t {
			t[r] = t[r][:last]
		}
		sum, widest, at = total()
	}
	for sum > width && widest > leastOf {
		most := max(widest-(sum-width), leastOf)
		for r := range t {
			if cell := []rune(t[r][at]); len(cell) > most {
				t[r][at] = string(cell[:most-1]) + "…"
			}
		}
		sum, widest, at = total()
	}
	return t
}

// String aligns the columns. It replaces control characters, so that text of tenants and guests
// cannot control the terminal.
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
				b.WriteString(strings.Repeat(" ", widths[c]-utf8.RuneCountInString(cell)+gap))
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
