// Package container makes the virtual GPUs of this machine available to containers. It
// writes the CDI specification that Podman and other engines read, and implements the OCI
// runtime in front of runc that "docker run --gpus" needs. DESIGN.md explains the design.
package container
