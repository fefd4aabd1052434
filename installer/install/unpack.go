package install

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// unpack unpacks the image, reporting its progress twice a second.
func (e *Executor) unpack(ctx context.Context, a Unpack, at Progress) error {
	if _, err := os.Stat(a.Source); errors.Is(err, fs.ErrNotExist) {
		return errors.New("the medium was removed: " + a.Source + " does not exist")
	}
	var help bytes.Buffer
	_ = e.Command(ctx, []string{"unsquashfs", "-help"}, "", &help) // it exits with 1 after its help
	// Small queues: the default takes 512 MiB, which a small machine may not have.
	argv := []string{"unsquashfs", "-f", "-da", "64", "-fr", "64", "-d", e.Target}
	if strings.Contains(help.String(), "-percentage") {
		argv = append(argv, "-percentage")
	} else {
		argv = append(argv, "-no-progress")
	}
	var done percent
	empty := used(e.Target)
	tell := func() {
		at.Bytes, at.Total = used(e.Target)-min(empty, used(e.Target)), a.Bytes
		switch p := done.value.Load(); {
		case p > 0:
			// The percentage also counts files, many of which are small. It predicts
			// the remaining time better, so the number of bytes is derived from it.
			at.Fraction = float64(p) / 100
			if at.Total > 0 {
				at.Bytes = uint64(at.Fraction * float64(at.Total))
			}
		case at.Total > 0:
			at.Fraction = min(float64(at.Bytes)/float64(at.Total), 1)
		}
		e.Progress(at)
	}
	finished := make(chan error, 1)
	go func() { finished <- e.run(ctx, append(argv, a.Source), "", &done) }()
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case err := <-finished:
			if err == nil {
				done.value.Store(100)
			}
			tell()
			return err
		case <-tick.C:
			tell()
		}
	}
}

// used returns the used bytes of the file system that contains dir.
func used(dir string) uint64 {
	var s unix.Statfs_t
	if unix.Statfs(dir, &s) != nil {
		return 0
	}
	return (s.Blocks - s.Bfree) * uint64(s.Bsize)
}

// percent parses the last number that unsquashfs -percentage printed.
type percent struct {
	value atomic.Int64
	line  []byte
}

func (p *percent) Write(b []byte) (int, error) {
	for _, c := range b {
		switch {
		case c >= '0' && c <= '9' && len(p.line) < 4:
			p.line = append(p.line, c)
		case c == '\n' || c == '\r':
			if n, err := strconv.Atoi(string(p.line)); err == nil && n <= 100 {
				p.value.Store(int64(n))
			}
			p.line = p.line[:0]
		default:
			p.line = append(p.line[:0], "x..."...) // not a bare number
		}
	}
	return len(b), nil
}
