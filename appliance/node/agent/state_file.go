package agent

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// fileStamp identifies a version of a file.
type fileStamp struct {
	modified time.Time
	bytes    int64
	inode    uint64
}

// errChanging is returned for a file that is being written.
var errChanging = errors.New("it is being written")

// readStable reads a file of at most most bytes as it was at one moment: it is read
// twice, and both times it must have the same content and stamp; otherwise the error
// is errChanging. The file belongs to a process that a guest may have taken over, so
// it is opened only if it is a regular file and no symbolic link.
func readStable(path string, most int64) ([]byte, fileStamp, error) {
	content, stamp, err := readOnce(path, most)
	if err != nil {
		return nil, stamp, err
	}
	again, after, err := readOnce(path, most)
	if err == nil && (stamp != after || !bytes.Equal(content, again)) {
		err = errChanging
	}
	if err != nil {
		return nil, stamp, fmt.Errorf("read %s: %w", path, err)
	}
	return content, stamp, nil
}

func readOnce(path string, most int64) ([]byte, fileStamp, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, fileStamp{}, err
	}
	defer f.Close()
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return nil, fileStamp{}, fmt.Errorf("stat %s: %w", path, err)
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return nil, fileStamp{}, fmt.Errorf("%s is not a regular file", path)
	}
	content, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(content)) > most {
		err = fmt.Errorf("%s is longer than %d bytes", path, most)
	}
	return content, stamped(st), err
}

// stampOf returns the stamp of the file, which is not followed if it is a symbolic
// link.
func stampOf(path string) (fileStamp, error) {
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		return fileStamp{}, fmt.Errorf("stat %s: %w", path, err)
	}
	return stamped(st), nil
}

func stamped(st unix.Stat_t) fileStamp {
	return fileStamp{time.Unix(st.Mtim.Unix()), st.Size, st.Ino}
}
