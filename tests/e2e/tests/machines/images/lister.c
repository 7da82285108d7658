/* Says what is in a tree, one line for each name: kind and mode, owner, length or device, number of
 * names, time of change, target, attributes, and the SHA-256 of the content. It is linked without
 * any library, so that it runs in every guest, and the same program looks at the tree of umoci. */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

static const uint32_t K[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

#define ROT(x, n) (((x) >> (n)) | ((x) << (32 - (n))))

static void block(uint32_t *h, const unsigned char *p) {
    uint32_t w[64], a = h[0], b = h[1], c = h[2], d = h[3], e = h[4], f = h[5], g = h[6], i = h[7];
    for (int t = 0; t < 16; t++)
        w[t] = (uint32_t)p[4 * t] << 24 | p[4 * t + 1] << 16 | p[4 * t + 2] << 8 | p[4 * t + 3];
    for (int t = 16; t < 64; t++)
        w[t] = w[t - 16] + w[t - 7] +
               (ROT(w[t - 15], 7) ^ ROT(w[t - 15], 18) ^ (w[t - 15] >> 3)) +
               (ROT(w[t - 2], 17) ^ ROT(w[t - 2], 19) ^ (w[t - 2] >> 10));
    for (int t = 0; t < 64; t++) {
        uint32_t x = i + (ROT(e, 6) ^ ROT(e, 11) ^ ROT(e, 25)) + ((e & f) ^ (~e & g)) + K[t] + w[t];
        uint32_t y = (ROT(a, 2) ^ ROT(a, 13) ^ ROT(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
        i = g, g = f, f = e, e = d + x, d = c, c = b, b = a, a = x + y;
    }
    h[0] += a, h[1] += b, h[2] += c, h[3] += d, h[4] += e, h[5] += f, h[6] += g, h[7] += i;
}

static void hash(const char *path) {
    uint32_t h[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                     0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    unsigned char buffer[65536 + 128];
    uint64_t length = 0;
    size_t kept = 0;
    int fd = open(path, O_RDONLY | O_NOFOLLOW);
    ssize_t count;
    if (fd < 0) {
        printf(" unreadable");
        return;
    }
    while ((count = read(fd, buffer + kept, 65536)) > 0) {
        size_t have = kept + (size_t)count, done = 0;
        length += (uint64_t)count;
        for (; have - done >= 64; done += 64)
            block(h, buffer + done);
        kept = have - done;
        memmove(buffer, buffer + done, kept);
    }
    close(fd);
    buffer[kept++] = 0x80;
    while (kept % 64 != 56)
        buffer[kept++] = 0;
    for (int i = 7; i >= 0; i--)
        buffer[kept++] = (unsigned char)(length * 8 >> (8 * i));
    for (size_t done = 0; done < kept; done += 64)
        block(h, buffer + done);
    printf(" ");
    for (int i = 0; i < 8; i++)
        printf("%08x", h[i]);
}

static int by_name(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void attributes(const char *path) {
    static char names[65536], value[65536];
    ssize_t length = llistxattr(path, names, sizeof names);
    char *sorted[1024];
    size_t count = 0;
    for (char *name = names; length > 0 && name < names + length && count < 1024;
         name += strlen(name) + 1)
        sorted[count++] = name;
    qsort(sorted, count, sizeof *sorted, by_name);
    for (size_t i = 0; i < count; i++) {
        ssize_t bytes = lgetxattr(path, sorted[i], value, sizeof value);
        printf(" %s=", sorted[i]);
        for (ssize_t at = 0; at < bytes; at++)
            printf("%02x", (unsigned char)value[at]);
    }
}

static void list(const char *root, const char *inside, int skips, char **skipped);

static void one(const char *root, const char *inside, int skips, char **skipped) {
    char path[8192], target[4097];
    struct stat found;
    for (int i = 0; i < skips; i++)
        if (strcmp(inside, skipped[i]) == 0)
            return;
    snprintf(path, sizeof path, "%s%s", root, inside);
    if (lstat(path, &found) != 0) {
        printf("%s gone\n", inside);
        return;
    }
    printf("%s %o %u:%u", inside, found.st_mode, found.st_uid, found.st_gid);
    if (!S_ISDIR(found.st_mode))
        printf(" links=%lu at=%ld", (unsigned long)found.st_nlink, (long)found.st_mtime);
    if (S_ISREG(found.st_mode)) {
        printf(" %ld", (long)found.st_size);
        hash(path);
    }
    if (S_ISCHR(found.st_mode) || S_ISBLK(found.st_mode))
        printf(" %u:%u", major(found.st_rdev), minor(found.st_rdev));
    if (S_ISLNK(found.st_mode)) {
        ssize_t length = readlink(path, target, sizeof target - 1);
        target[length < 0 ? 0 : length] = 0;
        printf(" -> %s", target);
    }
    attributes(path);
    printf("\n");
    if (S_ISDIR(found.st_mode))
        list(root, inside, skips, skipped);
}

static void list(const char *root, const char *inside, int skips, char **skipped) {
    char path[8192];
    char **names = NULL;
    size_t count = 0;
    snprintf(path, sizeof path, "%s%s", root, inside);
    DIR *directory = opendir(*path ? path : "/");
    struct dirent *entry;
    while (directory && (entry = readdir(directory))) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        names = realloc(names, (count + 1) * sizeof *names);
        names[count++] = strdup(entry->d_name);
    }
    if (directory)
        closedir(directory);
    qsort(names, count, sizeof *names, by_name);
    for (size_t i = 0; i < count; i++) {
        snprintf(path, sizeof path, "%s/%s", inside, names[i]);
        one(root, path, skips, skipped);
        free(names[i]);
    }
    free(names);
}

/* The root, then paths that are not looked at. */
int main(int argc, char **argv) {
    const char *root = argc > 1 && strcmp(argv[1], "/") != 0 ? argv[1] : "";
    list(root, "", argc - 2, argv + 2);
    return 0;
}
