#include "kernels.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <type_traits>
#include <vector>

namespace my_chip {
namespace {

template <typename T>
const T* Read(void* const* arguments, int index) {
  return static_cast<const T*>(arguments[index]);
}

// Integers are computed with as unsigned ones, which wrap.
template <typename T>
struct Wrapping {
  using type = T;
};
template <>
struct Wrapping<int32_t> {
  using type = uint32_t;
};
template <>
struct Wrapping<int64_t> {
  using type = uint64_t;
};

struct Add {
  template <typename T>
  T operator()(T x, T y) const {
    using W = typename Wrapping<T>::type;
    return static_cast<T>(static_cast<W>(x) + static_cast<W>(y));
  }
};
struct Subtract {
  template <typename T>
  T operator()(T x, T y) const {
    using W = typename Wrapping<T>::type;
    return static_cast<T>(static_cast<W>(x) - static_cast<W>(y));
  }
};
struct Multiply {
  template <typename T>
  T operator()(T x, T y) const {
    using W = typename Wrapping<T>::type;
    return static_cast<T>(static_cast<W>(x) * static_cast<W>(y));
  }
};
struct Divide {
  template <typename T>
  T operator()(T x, T y) const { return x / y; }
};
// NaN if one is; of two zeros the positive one is larger.
struct Maximum {
  template <typename T>
  T operator()(T x, T y) const {
    if constexpr (std::is_floating_point_v<T>) {
      if (std::isnan(x) || std::isnan(y)) return x + y;
      if (x == y) return std::signbit(x) ? y : x;
    }
    return x > y ? x : y;
  }
};
struct Minimum {
  template <typename T>
  T operator()(T x, T y) const {
    if constexpr (std::is_floating_point_v<T>) {
      if (std::isnan(x) || std::isnan(y)) return x + y;
      if (x == y) return std::signbit(x) ? x : y;
    }
    return x < y ? x : y;
  }
};

struct Negate {
  template <typename T>
  T operator()(T x) const { return Subtract()(std::is_floating_point_v<T> ? static_cast<T>(-0.0) : T(0), x); }
};
struct Abs {
  template <typename T>
  T operator()(T x) const {
    if constexpr (std::is_floating_point_v<T>) return std::fabs(x);
    return x < 0 ? Negate()(x) : x;
  }
};
struct Exponential {
  template <typename T>
  T operator()(T x) const { return std::exp(x); }
};
struct Log {
  template <typename T>
  T operator()(T x) const { return std::log(x); }
};
struct Logistic {
  template <typename T>
  T operator()(T x) const { return T(1) / (T(1) + std::exp(-x)); }
};
struct Sqrt {
  template <typename T>
  T operator()(T x) const { return std::sqrt(x); }
};
struct Rsqrt {
  template <typename T>
  T operator()(T x) const { return T(1) / std::sqrt(x); }
};
struct Sine {
  template <typename T>
  T operator()(T x) const { return std::sin(x); }
};
struct Cosine {
  template <typename T>
  T operator()(T x) const { return std::cos(x); }
};
struct Tanh {
  template <typename T>
  T operator()(T x) const { return std::tanh(x); }
};
struct LogicalNot {
  bool operator()(bool x) const { return !x; }
};

// elementwise: numbers are {elements}

template <typename Operation, typename T, typename Result>
void Unary(void* result, void* const* arguments, const int64_t* numbers) {
  const T* x = Read<T>(arguments, 0);
  Result* out = static_cast<Result*>(result);
  for (int64_t i = 0; i < numbers[0]; ++i) out[i] = Operation()(x[i]);
}

template <typename Operation, typename T, typename Result>
void Binary(void* result, void* const* arguments, const int64_t* numbers) {
  const T* x = Read<T>(arguments, 0);
  const T* y = Read<T>(arguments, 1);
  Result* out = static_cast<Result*>(result);
  for (int64_t i = 0; i < numbers[0]; ++i) out[i] = Operation()(x[i], y[i]);
}

template <typename T, typename Result>
void Convert(void* result, void* const* arguments, const int64_t* numbers) {
  const T* x = Read<T>(arguments, 0);
  Result* out = static_cast<Result*>(result);
  for (int64_t i = 0; i < numbers[0]; ++i) out[i] = static_cast<Result>(x[i]);
}

// select: numbers are {elements, 1, or 0 where one condition is for all}

template <typename Bits>
void Select(void* result, void* const* arguments, const int64_t* numbers) {
  const bool* condition = Read<bool>(arguments, 0);
  const Bits* yes = Read<Bits>(arguments, 1);
  const Bits* no = Read<Bits>(arguments, 2);
  Bits* out = static_cast<Bits*>(result);
  for (int64_t i = 0; i < numbers[0]; ++i) out[i] = condition[i * numbers[1]] ? yes[i] : no[i];
}

// iota: numbers are {elements, size of the dimension, elements of the dimensions after it}

template <typename T>
void Iota(void* result, void* const*, const int64_t* numbers) {
  T* out = static_cast<T*>(result);
  for (int64_t i = 0; i < numbers[0]; ++i) out[i] = static_cast<T>(i / numbers[2] % numbers[1]);
}

// broadcast and transpose: numbers are {rank, sizes of the result, strides of the argument}

// Calls `visit` with the place in memory of each index, the last dimension first.
template <typename Visit>
void ForEach(int64_t rank, const int64_t* sizes, const int64_t* strides, Visit visit) {
  for (int64_t d = 0; d < rank; ++d) {
    if (sizes[d] == 0) return;
  }
  std::vector<int64_t> index(rank);
  int64_t place = 0;
  while (true) {
    visit(place);
    int64_t d = rank - 1;
    for (; d >= 0; --d) {
      place += strides[d];
      if (++index[d] < sizes[d]) break;
      place -= strides[d] * sizes[d];
      index[d] = 0;
    }
    if (d < 0) return;
  }
}

template <typename Bits>
void Move(void* result, void* const* arguments, const int64_t* numbers) {
  const Bits* x = Read<Bits>(arguments, 0);
  Bits* out = static_cast<Bits*>(result);
  const int64_t rank = numbers[0];
  ForEach(rank, numbers + 1, numbers + 1 + rank, [&](int64_t place) { *out++ = x[place]; });
}

// reduce: numbers are {rank kept, rank reduced, sizes kept, strides kept, sizes reduced, strides reduced}

template <typename Operation, typename T>
void Reduce(void* result, void* const* arguments, const int64_t* numbers) {
  using Sum = std::conditional_t<std::is_same_v<T, float>, double, T>;  // sums of many floats stay exact
  const T* x = Read<T>(arguments, 0);
  const T start = *Read<T>(arguments, 1);
  T* out = static_cast<T*>(result);
  const int64_t kept = numbers[0], reduced = numbers[1];
  const int64_t* of_kept = numbers + 2;
  const int64_t* of_reduced = of_kept + 2 * kept;
  ForEach(kept, of_kept, of_kept + kept, [&](int64_t row) {
    Sum sum = start;
    ForEach(reduced, of_reduced, of_reduced + reduced,
            [&](int64_t place) { sum = Operation()(sum, static_cast<Sum>(x[row + place])); });
    *out++ = static_cast<T>(sum);
  });
}

// dot: numbers are {products, rows, terms, columns} of (products, rows, terms) and (products, terms, columns)

template <typename T>
void Dot(void* result, void* const* arguments, const int64_t* numbers) {
  const auto [products, rows, terms, columns] =
      std::array<int64_t, 4>{numbers[0], numbers[1], numbers[2], numbers[3]};
  const T* x = Read<T>(arguments, 0);
  const T* y = Read<T>(arguments, 1);
  T* out = static_cast<T*>(result);
  std::vector<double> sums(columns);
  for (int64_t p = 0; p < products; ++p, y += terms * columns) {
    for (int64_t r = 0; r < rows; ++r, x += terms, out += columns) {
      std::fill(sums.begin(), sums.end(), 0.0);
      for (int64_t t = 0; t < terms; ++t) {
        const double factor = x[t];
        const T* row = y + t * columns;
        for (int64_t c = 0; c < columns; ++c) sums[c] += factor * row[c];
      }
      for (int64_t c = 0; c < columns; ++c) out[c] = static_cast<T>(sums[c]);
    }
  }
}

// the table

using Table = std::unordered_map<std::string, Kernel>;

template <typename T>
void AddComparisons(Table& table, const std::string& type) {
  table["compare_eq." + type] = Binary<std::equal_to<T>, T, bool>;
  table["compare_ne." + type] = Binary<std::not_equal_to<T>, T, bool>;
  table["compare_lt." + type] = Binary<std::less<T>, T, bool>;
  table["compare_le." + type] = Binary<std::less_equal<T>, T, bool>;
  table["compare_gt." + type] = Binary<std::greater<T>, T, bool>;
  table["compare_ge." + type] = Binary<std::greater_equal<T>, T, bool>;
}

template <typename T>
void AddNumbers(Table& table, const std::string& type) {
  table["add." + type] = Binary<Add, T, T>;
  table["subtract." + type] = Binary<Subtract, T, T>;
  table["multiply." + type] = Binary<Multiply, T, T>;
  table["maximum." + type] = Binary<Maximum, T, T>;
  table["minimum." + type] = Binary<Minimum, T, T>;
  table["negate." + type] = Unary<Negate, T, T>;
  table["abs." + type] = Unary<Abs, T, T>;
  table["iota." + type] = Iota<T>;
  table["reduce_add." + type] = Reduce<Add, T>;
  table["reduce_maximum." + type] = Reduce<Maximum, T>;
  table["reduce_minimum." + type] = Reduce<Minimum, T>;
  table["convert." + type + ".float32"] = Convert<T, float>;
  table["convert." + type + ".float64"] = Convert<T, double>;
  table["convert.bool." + type] = Convert<bool, T>;
  AddComparisons<T>(table, type);
}

template <typename T>
void AddFloats(Table& table, const std::string& type) {
  AddNumbers<T>(table, type);
  table["divide." + type] = Binary<Divide, T, T>;
  table["exponential." + type] = Unary<Exponential, T, T>;
  table["log." + type] = Unary<Log, T, T>;
  table["logistic." + type] = Unary<Logistic, T, T>;
  table["sqrt." + type] = Unary<Sqrt, T, T>;
  table["rsqrt." + type] = Unary<Rsqrt, T, T>;
  table["sine." + type] = Unary<Sine, T, T>;
  table["cosine." + type] = Unary<Cosine, T, T>;
  table["tanh." + type] = Unary<Tanh, T, T>;
  table["dot." + type] = Dot<T>;
}

template <typename T>
void AddBits(Table& table, const std::string& type) {
  table["and." + type] = Binary<std::bit_and<T>, T, T>;
  table["or." + type] = Binary<std::bit_or<T>, T, T>;
  table["xor." + type] = Binary<std::bit_xor<T>, T, T>;
}

template <typename Bits>
void AddMoves(Table& table) {
  const std::string size = std::to_string(sizeof(Bits));
  table["move." + size] = Move<Bits>;
  table["select." + size] = Select<Bits>;
}

Table MakeTable() {
  Table table;
  AddFloats<float>(table, "float32");
  AddFloats<double>(table, "float64");
  AddNumbers<int32_t>(table, "int32");
  AddNumbers<int64_t>(table, "int64");
  AddBits<int32_t>(table, "int32");
  AddBits<int64_t>(table, "int64");
  AddBits<bool>(table, "bool");
  AddComparisons<bool>(table, "bool");
  table["not.bool"] = Unary<LogicalNot, bool, bool>;
  AddMoves<uint8_t>(table);
  AddMoves<uint16_t>(table);
  AddMoves<uint32_t>(table);
  AddMoves<uint64_t>(table);
  return table;
}

}  // namespace

const Table& Kernels() {
  static const auto* table = new Table(MakeTable());  // never destroyed, as the devices are not
  return *table;
}

}  // namespace my_chip
