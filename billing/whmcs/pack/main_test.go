package main

import (
	"archive/zip"
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestPackIsTheSameEachTime(t *testing.T) {
	dir := t.TempDir()
	var raws [][]byte
	for _, name := range []string{"a.zip", "b.zip"} {
		if err := pack("..", filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
		raw, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		raws = append(raws, raw)
	}
	if !bytes.Equal(raws[0], raws[1]) {
		t.Error("two zips of the same files differ, want the same bytes")
	}
	r, err := zip.OpenReader(filepath.Join(dir, "a.zip"))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var names []string
	for _, f := range r.File {
		names = append(names, f.Name)
	}
	for _, want := range []string{"basalt.php", "whmcs.json", "logo.png", "lib/Client.php", "lang/english.php", "lang/german.php", "templates/clientarea.tpl"} {
		if !slices.Contains(names, "modules/servers/basalt/"+want) {
			t.Errorf("zip does not contain %s: %v", want, names)
		}
	}
}
