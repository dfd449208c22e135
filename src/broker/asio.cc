// The one translation unit that compiles Boost.Asio; everybody else sees declarations only.
#include <boost/asio/impl/src.hpp>
