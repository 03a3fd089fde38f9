/* NVRTC: g++ makes a shared object of a kernel source in two passes. Between them, functions with
 * PTX are removed, since ptx.hpp has them, and one line is added for each kernel found
 * (kernel.hpp). The Makefile sets EMU_FOLDER, the folder of these headers, and EMU_CONTENT, a hash
 * of their contents, which is part of the version reported here. */
#include <nvrtc.h>

#include <algorithm>
#include <fcntl.h>
#include <fstream>
#include <regex>
#include <spawn.h>
#include <sstream>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

extern char **environ;

struct _nvrtcProgram {
    std::string name, text, image, log;
    std::vector<std::pair<std::string, std::string>> headers;
};

namespace
{

typedef std::vector<std::string> words;

std::string read(const std::string &path)
{
    std::ifstream file(path, std::ios::binary);
    std::stringstream all;
    all << file.rdbuf();
    return all.str();
}

void write(const std::string &path, const std::string &text)
{
    std::ofstream(path, std::ios::binary) << text;
}

/* Its output goes to the file `log`. */
bool run(const words &command, const std::string &log)
{
    std::vector<char *> argv;
    for (const std::string &w : command) argv.push_back((char *)w.c_str());
    argv.push_back(NULL);
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, 2, log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    pid_t child;
    int status = posix_spawnp(&child, argv[0], &files, NULL, argv.data(), environ);
    posix_spawn_file_actions_destroy(&files);
    if (status) return false;
    while (waitpid(child, &status, 0) < 0) continue;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* The end of the literal that begins at `at`. */
size_t literal_end(const std::string &s, size_t at)
{
    for (size_t i = at + 1; i < s.size(); i++) {
        if (s[i] == '\\')
            i++;
        else if (s[i] == s[at])
            return i;
    }
    return s.size();
}

/* Whether the declaration defines a function that ptx.hpp replaces, which has no PTX. */
bool is_replaced(const std::string &s, size_t begin, size_t end)
{
    static const std::regex head("^\\s*(#[^\n]*\n\\s*)*static[^(]*\\bwarp_(sum|max)\\(");
    return std::regex_search(s.substr(begin, std::min(end - begin, (size_t)200)), head);
}

/* A preprocessed source without its outermost functions that contain `asm` or are replaced. */
std::string without_ptx(const std::string &s)
{
    std::string kept;
    int depth = 0;
    size_t begin = 0; /* of the present declaration */
    bool ptx = false;
    for (size_t i = 0; i < s.size(); i++) {
        if (s[i] == '"' || s[i] == '\'') {
            i = literal_end(s, i);
            continue;
        }
        if (s[i] == '#' && (i == 0 || s[i - 1] == '\n')) { /* a line number, or a pragma */
            i = s.find('\n', i);
            if (i == std::string::npos) break;
            if (depth == 0 && s.find_first_not_of(" \n", begin) > i)
                kept.append(s, begin, i + 1 - begin), begin = i + 1;
            continue;
        }
        if (s[i] == '{') depth++;
        if (s[i] == '}') depth--;
        if (s.compare(i, 3, "asm") == 0 && !isalnum(s[i - 1]) && s[i - 1] != '_')
            ptx |= s[i + 3] == '(' || s[i + 3] == ' ';
        if (depth == 0 && (s[i] == '}' || s[i] == ';')) {
            if (!ptx && !is_replaced(s, begin, i + 1)) kept.append(s, begin, i + 1 - begin);
            begin = i + 1;
            ptx = false;
        }
    }
    return kept + s.substr(begin);
}

/* The source for g++: dynamic shared memory is that of kernel.hpp, and each kernel can be found. */
std::string complete(const std::string &preprocessed)
{
    static const std::regex dynamic("extern static [^;]*?(\\w+) (\\w+)\\[\\];"),
        kernel("extern \"C\"\\s+void\\s+(\\w+)\\s*\\(");
    std::string s = std::regex_replace(without_ptx(preprocessed), dynamic,
                                       "static $1 *const $2 = ($1 *)emu_dynamic;");
    std::string entries;
    for (std::sregex_iterator i(s.begin(), s.end(), kernel), end; i != end; ++i)
        entries +=
            "extern \"C\" __attribute__((visibility(\"default\"))) const emu_entry emu_entry_" +
            (*i)[1].str() + " = emu_kernel<" + (*i)[1].str() + ">::entry;\n";
    return s + "\n" + entries;
}

/* "--gpu-architecture=sm_90a" -> "900" */
std::string arch_of(const std::string &option)
{
    size_t at = option.find("sm_");
    return std::to_string(10 * atoi(option.c_str() + at + 3));
}

bool compile(_nvrtcProgram *p, const std::string &folder, const words &defines)
{
    const std::string log = folder + "/log", first = folder + "/first.ii",
                      second = folder + "/second.ii", object = folder + "/text.so";
    write(folder + "/" + p->name, p->text);
    for (auto &h : p->headers) write(folder + "/" + h.first, h.second);
    words c = {EMU_CXX, "-std=c++17", "-x", "c++", "-E", "-include", EMU_FOLDER "/kernel.hpp",
               "-I",    EMU_FOLDER,   "-I", folder};
    c.insert(c.end(), defines.begin(), defines.end());
    c.insert(c.end(), {folder + "/" + p->name, "-o", first});
    if (!run(c, log)) return false;
    write(second, complete(read(first)));
    if (!run({EMU_CXX, "-std=c++17", "-O1", "-w", "-fPIC", "-shared", "-fvisibility=hidden",
              "-fno-gnu-unique", "-fno-strict-aliasing", "-fno-exceptions", "-ffp-contract=off",
              second, "-o", object},
             log))
        return false;
    std::string bytes = read(object);
    uint64_t n = bytes.size();
    p->image = "emulated" + std::string((const char *)&n, sizeof n) + bytes;
    return true;
}

} // namespace

nvrtcResult nvrtcVersion(int *major, int *minor)
{
    *major = 13;
    *minor = (int)(EMU_CONTENT & 0x7fffffff);
    return NVRTC_SUCCESS;
}

nvrtcResult nvrtcGetNumSupportedArchs(int *n)
{
    *n = 2;
    return NVRTC_SUCCESS;
}

nvrtcResult nvrtcGetSupportedArchs(int *archs)
{
    archs[0] = 75;
    archs[1] = 90;
    return NVRTC_SUCCESS;
}

const char *nvrtcGetErrorString(nvrtcResult r)
{
    return r == NVRTC_SUCCESS ? "NVRTC_SUCCESS" : "NVRTC_ERROR_COMPILATION";
}

nvrtcResult nvrtcCreateProgram(nvrtcProgram *ret, const char *text, const char *name, int n,
                               const char *const *headers, const char *const *names)
{
    std::string file = name; /* its name may be a path */
    std::replace(file.begin(), file.end(), '/', '_');
    *ret = new _nvrtcProgram{file, text, "", "", {}};
    for (int i = 0; i < n; i++) (*ret)->headers.push_back({names[i], headers[i]});
    return NVRTC_SUCCESS;
}

nvrtcResult nvrtcDestroyProgram(nvrtcProgram *p)
{
    delete *p;
    *p = NULL;
    return NVRTC_SUCCESS;
}

nvrtcResult nvrtcCompileProgram(nvrtcProgram p, int n, const char *const *options)
{
    words defines;
    for (int i = 0; i < n; i++) {
        std::string o = options[i];
        if (o.compare(0, 2, "-D") == 0) defines.push_back(o);
        if (o.find("architecture") != std::string::npos)
            defines.push_back("-D__CUDA_ARCH__=" + arch_of(o));
    }
    const char *where = getenv("TMPDIR");
    std::string folder = std::string(where ? where : "/tmp") + "/emulator.XXXXXX";
    if (!mkdtemp(&folder[0])) return NVRTC_ERROR_INTERNAL_ERROR;
    bool fine = compile(p, folder, defines);
    p->log = read(folder + "/log");
    if (!getenv("EMU_KEEP")) run({"rm", "-rf", folder}, "/dev/null");
    return fine ? NVRTC_SUCCESS : NVRTC_ERROR_COMPILATION;
}

nvrtcResult nvrtcGetCUBINSize(nvrtcProgram p, size_t *bytes)
{
    *bytes = p->image.size();
    return NVRTC_SUCCESS;
}

nvrtcResult nvrtcGetCUBIN(nvrtcProgram p, char *image)
{
    memcpy(image, p->image.data(), p->image.size());
    return NVRTC_SUCCESS;
}

/* There is none: the source is compiled for the processor. */
static const char no_ptx[] = "// emulated GPU: no PTX\n";

nvrtcResult nvrtcGetPTXSize(nvrtcProgram, size_t *bytes)
{
    *bytes = sizeof no_ptx;
    return NVRTC_SUCCESS;
}

nvrtcResult nvrtcGetPTX(nvrtcProgram, char *ptx)
{
    memcpy(ptx, no_ptx, sizeof no_ptx);
    return NVRTC_SUCCESS;
}

nvrtcResult nvrtcGetProgramLogSize(nvrtcProgram p, size_t *bytes)
{
    *bytes = p->log.size() + 1;
    return NVRTC_SUCCESS;
}

nvrtcResult nvrtcGetProgramLog(nvrtcProgram p, char *log)
{
    memcpy(log, p->log.c_str(), p->log.size() + 1);
    return NVRTC_SUCCESS;
}
