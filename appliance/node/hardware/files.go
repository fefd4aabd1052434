package hardware

import (
	"io"
	"io/fs"
	"path"
	"strconv"
	"strings"
)

const (
	maxFile    = 1 << 20 // bytes read of a file
	maxEntries = 4096    // files read of a directory
)

// read returns the start of a file, or "" if it cannot be read.
func read(f fs.FS, name string) string {
	file, err := f.Open(name)
	if err != nil {
		return ""
	}
	defer func() { _ = file.Close() }()
	raw, err := io.ReadAll(io.LimitReader(file, maxFile))
	if err != nil && len(raw) == 0 {
		return ""
	}
	return string(raw)
}

// line returns the content of a file with one line, or "" if it cannot be read.
func line(f fs.FS, name ...string) string {
	return strings.TrimSpace(read(f, path.Join(name...)))
}

// number returns the number in a file with one line.
func number(f fs.FS, name ...string) (int64, bool) {
	n, err := strconv.ParseInt(line(f, name...), 10, 64)
	return n, err == nil
}

func exists(f fs.FS, name ...string) bool {
	_, err := fs.Lstat(f, path.Join(name...))
	return err == nil
}

// names returns the names of a directory's files that begin with prefix, sorted.
func names(f fs.FS, dir, prefix string) (all []string) {
	entries, err := fs.ReadDir(f, dir)
	if err != nil {
		return nil
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), prefix) && len(all) < maxEntries {
			all = append(all, e.Name())
		}
	}
	return all
}

// target returns the last element of a link's target, or "" if there is none.
func target(f fs.FS, name ...string) string {
	to, err := fs.ReadLink(f, path.Join(name...))
	if err != nil {
		return ""
	}
	return path.Base(to)
}
