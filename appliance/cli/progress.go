package cli

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// bar shows the progress of a copy: a bar on a terminal, elsewhere one line at the end.
type bar struct {
	out         io.Writer
	live        bool
	what        string
	done, total int64
	drawn       time.Time
	now         func() time.Time
}

func (a *App) progress(what string, total int64) *bar {
	_, live := terminal(a.Err)
	return &bar{out: a.Err, live: live, what: what, total: total, now: a.Now}
}

func (b *bar) Write(p []byte) (int, error) {
	b.done += int64(len(p))
	if now := b.now(); b.live && now.Sub(b.drawn) > 100*time.Millisecond {
		b.drawn = now
		b.draw()
	}
	return len(p), nil
}

func (b *bar) draw() {
	const width = 30
	full := width
	if b.total > 0 {
		full = int(min(b.done, b.total) * width / b.total)
	}
	fmt.Fprintf(b.out, "\r%s [%s%s] %s of %s \x1b[K", b.what, strings.Repeat("#", full), strings.Repeat(".", width-full),
		formatSize(b.done), formatSize(b.total))
}

func (b *bar) end() {
	if b.live {
		b.draw()
		fmt.Fprintln(b.out)
		return
	}
	fmt.Fprintf(b.out, "%s: %s\n", b.what, formatSize(b.done))
}
