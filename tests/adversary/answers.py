import ctypes, errno, mmap, os, sys
os.chdir(sys.argv[1])
LIBRARY = ctypes.CDLL(None, use_errno=True)
LIBRARY.mmap.restype = ctypes.c_void_p
os.makedirs('answers', exist_ok=True); os.chdir('answers')
def make(target, name):
    if os.path.lexists(name): os.unlink(name)
    os.symlink(target, name)
make('a' * 4095, 'long'); make('short', 'short'); make('loop', 'loop'); make('..', 'up')
open('file', 'w').close()
def say(name, count, said=b''):
    code = errno.errorcode[ctypes.get_errno()] if count == -1 else count
    print(name, code, said)
def read(name, path, size, room=None, directory=-100):
    room = room or ctypes.create_string_buffer(b'x' * 5000, 5000)
    ctypes.set_errno(0)
    count = LIBRARY.readlinkat(directory, path, room, ctypes.c_size_t(size))
    said = room.raw[:max(count, 0) + 1] if hasattr(room, 'raw') else b''
    say(name, count, (len(said), said[:3], said[-3:]))
for size in (0, 1, 5, 4094, 4095, 4096, 5000, 0x7fffffff): read(f'long {size}', b'long', size); read(f'short {size}', b'short', size)
for size in (-1, 0x80000000, 1 << 32): read(f'size {size}', b'short', size)
read('loop', b'loop', 10); read('through', b'loop/x', 10); read('file', b'file', 10); read('under', b'file/x', 10)
read('nothing', b'nothing', 10); read('empty', b'', 10); read('null', None, 10); read('slash', b'up/', 10); read('dot', b'.', 10)
read('name too long', b'n' * 300, 10); read('path too long', b'p/' * 3000, 10); read('just fits', b'./' * 2045 + b'short', 10)
read('bad directory', b'short', 10, directory=999); read('file as directory', b'short', 10, directory=os.open('file', os.O_RDONLY))
read('empty of a link', b'', 10, directory=os.open('short', os.O_PATH | os.O_NOFOLLOW)); read('empty of a file', b'', 10, directory=os.open('file', os.O_RDONLY))
# By memory of the kernel's what was asked for once.
for turn in range(2):
    for path in ('file', 'file/', 'file/.', 'file/x', 'nothing', 'nothing/x', 'nothing/', 'up/', 'up/answers/file', 'up/answers/short', 'loop/x', 'short/x', '.', '..', 'file/' + 'n' * 300):
        read(f'absolute {path[:20]}', f'{os.getcwd()}/{path}'.encode(), 10)
    for path in ('/', '//', '/.', '/..', '/etc/..', '/usr', '/usr/', '/nothing/at/all', '/' + 'n' * 300, '/' + 'p/' * 3000): read(f'from the root {path[:20]}', path.encode(), 10)
    read('absolute without room', os.path.abspath('file').encode(), 0); read('absolute of no size', os.path.abspath('file').encode(), -1)
read('absolute with a bad directory', os.path.abspath('short').encode(), 10, directory=999)
for address in (0, 1, (1 << 47) - 4096, (1 << 63), (1 << 64) - 8):
    read(f'address {address:x}', b'short', 10, ctypes.c_void_p(address))
    read(f'path {address:x}', ctypes.c_void_p(address), 10)
pages = LIBRARY.mmap(None, ctypes.c_size_t(8192), 3, 0x22, -1, 0)
LIBRARY.munmap(ctypes.c_void_p(pages + 4096), ctypes.c_size_t(4096))
read('the last bytes of a page', b'short', 5, ctypes.c_void_p(pages + 4091)); print(ctypes.string_at(pages + 4091, 5))
read('beyond them', b'short', 5, ctypes.c_void_p(pages + 4092))
ctypes.memmove(pages + 4090, b'short\0', 6); read('a path at the end of a page', ctypes.c_void_p(pages + 4090), 10)
ctypes.memmove(pages + 4091, b'short', 5); read('a path without an end', ctypes.c_void_p(pages + 4091), 10)
def attribute(name, *words):
    ctypes.set_errno(0); room = ctypes.create_string_buffer(b'x' * 70000, 70000)
    words = [room if word is Ellipsis else ctypes.c_size_t(word) if isinstance(word, int) else word for word in words]
    count = getattr(LIBRARY, name)(*words)
    say(f'{name} {[word for word in words[1:] if isinstance(word, bytes)]}', count, (room.raw[:20], room.raw[max(count - 2, 0):count + 2]))
for path, names in (('file', 3), ('up', 0)):
    for index in range(names): os.setxattr(path, f'user.{index}', bytes([65 + index]) * (index * 1000))
for size in (0, 1, 1000, 2000, 65536, 65537, 1 << 40):
    for index in range(4): attribute('getxattr', b'file', f'user.{index}'.encode(), ..., size)
    attribute('listxattr', b'file', ..., size); attribute('llistxattr', b'short', ..., size); attribute('lgetxattr', b'short', b'user.0', ..., size)
for name in (b'', b'user.' + b'n' * 250, b'user.' + b'n' * 251, b'nothing', b'trusted.x', b'security.selinux', b'system.posix_acl_access', None):
    attribute('getxattr', b'file', name, ..., 100)
for path in (b'nothing', b'loop', b'file/x', b'', None, b'n' * 300): attribute('getxattr', path, b'user.0', ..., 10); attribute('listxattr', path, ..., 10)
os.chdir('..')
print('all done')
