package auditor

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/syslog"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Parse returns the anchor for a setting:
//
//	file:/PATH                  a file with one line per mark; best where the node can only append
//	syslog:                     the node's syslog
//	syslog:udp://HOST:PORT      a remote syslog; tcp as well
//	https://HOST/PATH           a POST of the mark as JSON; http on a private network
func Parse(text string) (Anchor, error) {
	if path, ok := strings.CutPrefix(text, "file:"); ok && filepath.IsAbs(path) {
		return file(path), nil
	}
	if rest, ok := strings.CutPrefix(text, "syslog:"); ok {
		if rest == "" {
			return logger{}, nil
		}
		if u, err := url.Parse(rest); err == nil && (u.Scheme == "udp" || u.Scheme == "tcp") && u.Port() != "" && u.Path == "" {
			return logger{u.Scheme, u.Host}, nil
		}
	}
	if u, err := url.Parse(text); err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" {
		return hook(text), nil
	}
	return nil, fmt.Errorf("%q is not a valid anchor: want file:/PATH, syslog:, syslog:udp://HOST:PORT or https://HOST/PATH", text)
}

// maxFile is how many bytes at the end of a file are read: two years of marks.
const maxFile = 4 << 20

type file string

// Keep appends a line, and waits for the disk. It first terminates a line that a crash
// left incomplete.
func (f file) Keep(_ context.Context, m Mark) error {
	raw, err := json.Marshal(m)
	if err != nil {
		return err
	}
	out, err := os.OpenFile(string(f), os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	if st, err := out.Stat(); err == nil && st.Size() > 0 {
		var end [1]byte
		if _, err := out.ReadAt(end[:], st.Size()-1); err == nil && end[0] != '\n' {
			raw = append([]byte{'\n'}, raw...)
		}
	}
	_, err = out.Write(append(raw, '\n'))
	return errors.Join(err, out.Sync(), out.Close())
}

// Kept reads the lines. A line that a crash left incomplete is ignored.
func (f file) Kept(context.Context) (all []Mark, err error) {
	in, err := os.Open(string(f))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer in.Close()
	st, err := in.Stat()
	if err != nil {
		return nil, err
	}
	from := max(0, st.Size()-maxFile)
	lines := bufio.NewReader(io.NewSectionReader(in, from, maxFile))
	for n := 0; ; n++ {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return all, err
		}
		var m Mark
		err = json.Unmarshal(line, &m)
		var cut *json.SyntaxError
		switch {
		case err == nil && m.Seq > 0:
			all = append(all, m)
		case errors.As(err, &cut) && cut.Offset >= int64(len(line)) && line[0] == '{', n == 0 && from > 0:
		default:
			return all, fmt.Errorf("%s: line %q is not a valid mark", string(f), line[:min(len(line), 80)])
		}
	}
}

// logger is a syslog; the zero value is the node's own.
type logger struct{ network, address string }

// Keep sends a line.
func (l logger) Keep(_ context.Context, m Mark) error {
	raw, err := json.Marshal(m)
	if err != nil {
		return err
	}
	w, err := syslog.Dial(l.network, l.address, syslog.LOG_NOTICE|syslog.LOG_AUTHPRIV, "basalt-audit")
	if err != nil {
		return fmt.Errorf("syslog: %w", err)
	}
	return errors.Join(w.Notice(string(raw)), w.Close())
}

// Kept returns no marks, as syslog cannot be read back.
func (logger) Kept(context.Context) ([]Mark, error) { return nil, nil }

const hookTime = 15 * time.Second

// hook is a URL that the operator chose.
type hook string

// Keep posts the mark.
func (h hook) Keep(ctx context.Context, m Mark) error {
	raw, err := json.Marshal(m)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, string(h), bytes.NewReader(raw))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	c := http.Client{Timeout: hookTime, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := c.Do(req)
	if err != nil {
		return errors.New("the anchor's address is not reachable") // the address may contain a secret
	}
	if err := resp.Body.Close(); err != nil {
		return err
	}
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return fmt.Errorf("the anchor's address responded with status %d", resp.StatusCode)
	}
	return nil
}

// Kept returns no marks, as the receiver cannot be read back.
func (hook) Kept(context.Context) ([]Mark, error) { return nil, nil }
