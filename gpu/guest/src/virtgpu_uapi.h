/* The ioctls of the Linux virtio_gpu driver that the channel needs. Layouts and numbers are
 * from Linux UAPI, drm/drm.h and drm/virtgpu_drm.h. */
#ifndef BASALT_VIRTGPU_UAPI_H
#define BASALT_VIRTGPU_UAPI_H

#include <stddef.h>
#include <stdint.h>
#include <sys/ioctl.h>

struct drm_version_ {
	int major, minor, patchlevel;
	size_t name_len;
	char *name;
	size_t date_len;
	char *date;
	size_t desc_len;
	char *desc;
};
#define DRM_IOCTL_VERSION_ _IOWR('d', 0x00, struct drm_version_)

struct gem_close {
	uint32_t handle, pad;
};
#define DRM_IOCTL_GEM_CLOSE_ _IOW('d', 0x09, struct gem_close)

struct virtgpu_map {
	uint64_t offset;
	uint32_t handle, pad;
};
#define VIRTGPU_IOCTL_MAP _IOWR('d', 0x41, struct virtgpu_map)

/* The layout without the ring index and the syncobjs of newer kernels, which accept this
 * shorter form too. */
struct virtgpu_execbuffer {
	uint32_t flags, size;
	uint64_t command, bo_handles;
	uint32_t num_bo_handles;
	int32_t fence_fd;
};
#define VIRTGPU_IOCTL_EXECBUFFER _IOWR('d', 0x42, struct virtgpu_execbuffer)
#define VIRTGPU_EXECBUF_FENCE_FD_OUT 2

struct virtgpu_resource_create {
	uint32_t target, format, bind, width, height, depth, array_size, last_level, nr_samples, flags;
	uint32_t bo_handle, res_handle, size, stride;
};
#define VIRTGPU_IOCTL_RESOURCE_CREATE _IOWR('d', 0x44, struct virtgpu_resource_create)
#define VIRTGPU_FORMAT_R8 64
#define VIRTGPU_BIND_CUSTOM (1u << 4)

struct virtgpu_resource_info {
	uint32_t bo_handle, res_handle, size, blob_mem;
};
#define VIRTGPU_IOCTL_RESOURCE_INFO _IOWR('d', 0x45, struct virtgpu_resource_info)

struct virtgpu_get_caps {
	uint32_t cap_set_id, cap_set_ver;
	uint64_t addr;
	uint32_t size, pad;
};
#define VIRTGPU_IOCTL_GET_CAPS _IOWR('d', 0x49, struct virtgpu_get_caps)

#endif
