// to[column * rows + row] = from[row * columns + column]: `from` has `rows` rows of `columns`
// elements, `to` has `columns` rows of `rows`.
//
// @blocks  (columns + 31) / 32, (rows + 7) / 8
// @threads 32, 8
extern "C" __global__ void transpose(ELEMENT *to, const ELEMENT *from, long long rows,
                                     long long columns)
{
    long long column = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    long long row = (long long)blockIdx.y * blockDim.y + threadIdx.y;
    if (row < rows && column < columns) to[column * rows + row] = from[row * columns + column];
}
