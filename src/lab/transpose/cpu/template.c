// to[column * rows + row] = from[row * columns + column]: `from` has `rows` rows of `columns`
// elements, `to` has `columns` rows of `rows`.
void transpose(float *to, const float *from, int64_t rows, int64_t columns, int threads)
{
#pragma omp parallel for num_threads(threads)
    for (int64_t row = 0; row < rows; row++)
        for (int64_t column = 0; column < columns; column++)
            to[column * rows + row] = from[row * columns + column];
}
