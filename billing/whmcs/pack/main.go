// Command pack creates the WHMCS module's zip file, to be unpacked over an installation
// of WHMCS. The same files give the same bytes.
package main

import (
	"archive/zip"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: pack DIR ZIP")
		os.Exit(2)
	}
	if err := pack(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "pack:", err)
		os.Exit(1)
	}
}

// pack writes DIR/modules, in the order of names, with a fixed time.
func pack(dir, out string) (err error) {
	if err := os.MkdirAll(filepath.Dir(out), 0o755); err != nil {
		return err
	}
	f, err := os.Create(out)
	if err != nil {
		return err
	}
	w := zip.NewWriter(f)
	err = filepath.WalkDir(filepath.Join(dir, "modules"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		h := &zip.FileHeader{Name: filepath.ToSlash(name), Method: zip.Deflate, Modified: time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)}
		h.SetMode(0o644)
		part, err := w.CreateHeader(h)
		if err != nil {
			return err
		}
		raw, err := os.ReadFile(path)
		if err == nil {
			_, err = part.Write(raw)
		}
		return err
	})
	if err == nil {
		err = w.Close()
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	return err
}
